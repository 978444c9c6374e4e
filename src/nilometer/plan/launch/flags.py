"""THE tables of engines' flags: which field of a plan each one sets, and which are known and set none.

Here are the form of a row and the two engines that take their flags by Python's argparse; the others are in
`launch_flags_others`. A flag that is in no table is named as unknown, with the nearest that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

NONE, UNCOUNTED = "", "uncounted"
"""Fields of flags that set none: of no weight for a plan; or of weight, but not counted by it."""
BOOLEAN = frozenset({"on", "off", "set", "switch"})
"""Kinds that can stand alone."""


class Flag(msgspec.Struct, frozen=True):
    """One flag: how its value is read (see `launch_values`) and which field it sets."""

    name: str
    """Its first and longest spelling."""
    kind: str
    field: str


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine takes its flags."""

    engine: str
    flags: Mapping[str, Flag]
    env: Mapping[str, Flag] = {}
    prefix: str | None = None
    """Variables that begin so are the engine's own: one that is in no table is unknown. None = none is told."""
    underscores: bool = False
    """Whether `--max_model_len` is taken for `--max-model-len`."""
    abbreviates: bool = False
    """Whether an unambiguous beginning of a flag is taken for it (argparse)."""
    negates: bool = False
    """Whether a flag that stands alone has a twin `--no-...`."""
    suffixes: bool = False
    """Whether 32k and 1M are numbers: a small letter counts in thousands, a capital one in 1024."""
    source: str


def rows(table: str) -> Iterator[tuple[str, Flag]]:
    """(spelling, flag) of lines `KIND FIELD NAME...`, the first name being the flag's own."""
    for line in table.strip().splitlines():
        kind, field, *names = line.split()
        flag = Flag(names[0], kind, field)
        yield from ((name, flag) for name in names)


def plain(kind: str, names: str, field: str = NONE) -> Iterator[tuple[str, Flag]]:
    """(spelling, flag) of names that share a kind; `a,b` are two spellings of one flag."""
    for word in names.split():
        spellings = word.split(",")
        flag = Flag(spellings[0], kind, field)
        yield from ((name, flag) for name in spellings)


def table(*parts: Iterable[tuple[str, Flag]]) -> Mapping[str, Flag]:
    """Spelling -> flag."""
    return {name: flag for part in parts for name, flag in part}


_VLLM = """
word   model          --model
open   context        --max-model-len
share  utilisation    --gpu-memory-utilization
count  max_seqs       --max-num-seqs
tokens batched_tokens --max-num-batched-tokens
count  block          --block-size
on     chunked        --enable-chunked-prefill
on     prefix_caching --enable-prefix-caching
on     eager          --enforce-eager
bytes  kv_bytes       --kv-cache-memory-bytes --kv-cache-memory
count  kv_blocks      --num-gpu-blocks-override
count  tensor         --tensor-parallel-size -tp
count  pipeline       --pipeline-parallel-size -pp
count  data           --data-parallel-size -dp
on     experts        --enable-expert-parallel -ep
word   quantisation   --quantization -q
word   dtype          --dtype
word   key_precision  --kv-cache-dtype
word   config         --config
"""
_VLLM_UNCOUNTED = """
--cpu-offload-gb --speculative-config,-sc --speculative-model --num-speculative-tokens --hf-overrides --rope-scaling
--rope-theta --kv-transfer-config --decode-context-parallel-size,-dcp --prefill-context-parallel-size,-pcp --max-loras
--max-lora-rank --limit-mm-per-prompt --load-format --additional-config --kv-offloading-size --kv-offloading-backend
--ngram-prompt-lookup-max --ngram-prompt-lookup-min --qlora-adapter-name-or-path --runner --convert --task
"""
_VLLM_UNCOUNTED_SET = """
--enable-lora --enable-prompt-adapter --disable-sliding-window --disable-hybrid-kv-cache-manager --enable-eplb
--enable-sleep-mode --kv-sharing-fast-prefill --skip-mm-profiling --language-model-only --enable-dbo
"""
_VLLM_VALUE = """
--host --port --uds --root-path --ssl-keyfile --ssl-certfile --ssl-ca-certs --ssl-cert-reqs --ssl-ciphers
--uvicorn-log-level --disable-access-log-for-endpoints --log-config-file --max-log-len --h11-max-incomplete-event-size
--h11-max-header-count --chat-template --chat-template-content-format --default-chat-template-kwargs --response-role
--tool-call-parser --tool-parser-plugin --tool-server --tokenizer --tokenizer-mode --hf-config-path --config-format
--seed --revision --code-revision --tokenizer-revision --max-logprobs --logprobs-mode --allowed-local-media-path
--model-impl --override-attention-dtype --generation-config --override-generation-config --override-pooler-config
--pooler-config --logits-processor-pattern --io-processor-plugin --download-dir --safetensors-load-strategy
--model-loader-extra-config --pt-load-map-location --reasoning-parser --reasoning-parser-plugin
--structured-outputs-config --guided-decoding-backend --distributed-executor-backend --master-addr --master-port
--nnodes,-n --node-rank,-r --data-parallel-rank,-dpn --data-parallel-start-rank,-dpr --data-parallel-size-local,-dpl
--data-parallel-address,-dpa --data-parallel-rpc-port,-dpp --data-parallel-backend,-dpb --all2all-backend
--eplb-config --expert-placement-strategy --dbo-decode-token-threshold --dbo-prefill-token-threshold --ubatch-size
--max-parallel-loading-workers --worker-cls --worker-extension-cls --dcp-kv-cache-interleave-size --swap-space
--kv-cache-metrics-sample --prefix-caching-hash-algo --mamba-cache-dtype --mamba-ssm-cache-dtype --mamba-block-size
--mamba-cache-mode --media-io-kwargs --mm-processor-kwargs --mm-processor-cache-gb --mm-processor-cache-type
--mm-shm-cache-max-object-size-mb --mm-encoder-tp-mode --mm-encoder-attn-backend --video-pruning-rate
--default-mm-loras --max-cpu-loras --lora-dtype --lora-extra-vocab-size --device --num-lookahead-slots
--num-scheduler-steps --scheduler-delay-factor --scheduling-policy --scheduler-cls --preemption-mode
--max-num-partial-prefills --max-long-partial-prefills --long-prefill-token-threshold --stream-interval
--max-seq-len-to-capture --max-context-len-to-capture --compilation-config,-cc --attention-config,-ac
--attention-backend --optimization-level,-O --cuda-graph-sizes --cudagraph-capture-sizes
--max-cudagraph-capture-size --kv-events-config --profiler-config --show-hidden-metrics-for-version
--otlp-traces-endpoint --collect-detailed-traces --api-server-count,-asc --tokenizer-pool-size --tokenizer-pool-type
--tokenizer-pool-extra-config --performance-mode --shutdown-timeout --moe-backend --linear-backend
"""
_VLLM_MANY = """
--served-model-name --api-key --allowed-origins --allowed-methods --allowed-headers --lora-modules --prompt-adapters
--middleware --logits-processors --ignore-patterns --allowed-media-domains
"""
_VLLM_SET = """
--allow-credentials --enable-ssl-refresh --disable-uvicorn-access-log --enable-log-outputs --enable-log-deltas
--log-error-stack --enable-request-id-headers --disable-fastapi-docs --enable-offline-docs
--trust-request-chat-template --enable-auto-tool-choice --exclude-tools-when-tool-choice-none
--return-tokens-as-token-ids --disable-frontend-multiprocessing --enable-prompt-tokens-details
--enable-server-load-tracking --enable-force-include-usage --enable-tokenizer-info-endpoint --tokens-only
--trust-remote-code --skip-tokenizer-init --disable-cascade-attn --enable-prompt-embeds --hf-token --use-tqdm-on-load
--enable-reasoning --data-parallel-hybrid-lb,-dph --data-parallel-external-lb,-dpe --disable-custom-all-reduce
--ray-workers-use-nsight --calculate-kv-scales --enable-mm-embeds --interleave-mm-strings --fully-sharded-loras
--enable-lora-bias --disable-chunked-mm-input --async-scheduling --multi-step-stream-outputs
--disable-async-output-proc --use-v2-block-manager --disable-mm-preprocessor-cache --disable-log-stats
--disable-log-requests --enable-log-requests --aggregate-engine-logging --kv-cache-metrics --enable-mfu-metrics
--cudagraph-metrics --enable-layerwise-nvtx-tracing --headless --disable-nccl-for-dp-synchronization --grpc
--speculative-disable-mqa-scorer --verbose
"""
_VLLM_ENV = """
gib    kv_bytes       VLLM_CPU_KVCACHE_SPACE
"""

VLLM = Dialect(
    engine="vllm",
    flags=table(
        rows(_VLLM),
        plain("value", _VLLM_UNCOUNTED, UNCOUNTED),
        plain("set", _VLLM_UNCOUNTED_SET, UNCOUNTED),
        plain("value", _VLLM_VALUE),
        plain("many", _VLLM_MANY),
        plain("set", _VLLM_SET),
    ),
    env=table(rows(_VLLM_ENV)),
    underscores=True,
    abbreviates=True,
    negates=True,
    suffixes=True,
    source="vllm, vllm/engine/arg_utils.py and entrypoints/openai/cli_args.py (0.8 to 0.27)",
)

_SGLANG = """
word   model          --model-path --model
open   context        --context-length
share  utilisation    --mem-fraction-static
count  max_seqs       --max-running-requests
chunk  batched_tokens --chunked-prefill-size
count  block          --page-size
off    prefix_caching --disable-radix-cache
on     eager          --disable-cuda-graph
count  kv_tokens      --max-total-tokens
count  tensor         --tensor-parallel-size --tp-size --tp
count  pipeline       --pipeline-parallel-size --pp-size --pp
count  data           --data-parallel-size --dp-size --dp
count  expert         --expert-parallel-size --ep-size --ep
word   quantisation   --quantization
word   dtype          --dtype
word   key_precision  --kv-cache-dtype
word   config         --config
"""
_SGLANG_UNCOUNTED = """
--speculative-algorithm --speculative-draft-model-path,--speculative-draft-model --speculative-num-steps
--speculative-eagle-topk --speculative-num-draft-tokens --cpu-offload-gb --hicache-ratio --hicache-size
--json-model-override-args --load-format --disaggregation-mode --moe-dense-tp-size --swa-full-tokens-ratio
--max-mamba-cache-size --mamba-full-memory-ratio --mamba-ssm-dtype --ep-num-redundant-experts --max-lora-rank
--max-loras-per-batch --attention-context-parallel-size,--attn-cp-size --moe-data-parallel-size,--moe-dp-size
--kt-num-gpu-experts --kt-weight-path --torchao-config --modelopt-quant
"""
_SGLANG_UNCOUNTED_SET = """
--enable-dp-attention --enable-lora --enable-hierarchical-cache --enable-eplb --disable-hybrid-swa-memory
--enable-lmcache --is-embedding --language-only --encoder-only --enable-dp-lm-head
"""
_SGLANG_VALUE = """
--tokenizer-path --tokenizer-mode --tokenizer-backend --tokenizer-worker-num --detokenizer-worker-num
--model-loader-extra-config --revision --model-impl --host --port --fastapi-root-path --warmups --nccl-port
--quantization-param-path --modelopt-checkpoint-restore-path --modelopt-checkpoint-save-path --modelopt-export-path
--rl-quant-profile --max-queued-requests --prefill-max-requests --max-prefill-tokens --schedule-policy
--priority-scheduling-preemption-threshold --schedule-conservativeness --radix-eviction-policy
--prefill-delayer-max-delay-passes --prefill-delayer-token-usage-low-watermark --prefill-delayer-queue-min-ratio
--prefill-delayer-max-delay-ms --device --pp-max-micro-batch-size --pp-async-batch-depth --stream-interval
--random-seed --constrained-json-whitespace-pattern --watchdog-timeout --soft-watchdog-timeout --dist-timeout
--download-dir --model-checksum --base-gpu-id --gpu-id-step --log-level --log-level-http --log-requests-level
--log-requests-format --crash-dump-folder --tokenizer-metrics-custom-labels-header --gc-warning-threshold-secs
--decode-log-interval --kv-events-config --otlp-traces-endpoint --export-metrics-to-file-dir --api-key
--admin-api-key --served-model-name --weight-version --chat-template --hf-chat-template-name --completion-template
--file-storage-path --reasoning-parser --tool-call-parser --tool-server --sampling-defaults --load-balance-method
--dist-init-addr,--nccl-init-addr --nnodes --node-rank --preferred-sampling-params --max-loaded-loras
--lora-eviction-policy --lora-backend --max-lora-chunk-size --lora-drain-wait-threshold --attention-backend
--prefill-attention-backend --decode-attention-backend --sampling-backend --grammar-backend --mm-attention-backend
--dsa-prefill-backend,--nsa-prefill-backend --dsa-decode-backend,--nsa-decode-backend --fp8-gemm-backend
--fp8-gemm-runner-backend --fp4-gemm-backend --speculative-draft-model-revision --speculative-draft-load-format
--speculative-accept-threshold-single --speculative-accept-threshold-acc --speculative-token-map
--speculative-attention-mode --speculative-draft-attention-backend --speculative-moe-runner-backend
--speculative-moe-a2a-backend --speculative-draft-model-quantization --speculative-ngram-min-bfs-breadth
--speculative-ngram-max-bfs-breadth --speculative-ngram-match-type --speculative-ngram-max-trie-depth
--speculative-ngram-capacity --moe-a2a-backend --moe-runner-backend --flashinfer-mxfp4-moe-precision --deepep-mode
--deepep-dispatcher-output-dtype --ep-dispatch-algorithm --init-expert-location --eplb-algorithm
--eplb-rebalance-num-iterations --eplb-rebalance-layers-per-chunk --eplb-min-rebalancing-utilization-threshold
--expert-distribution-recorder-mode --expert-distribution-recorder-buffer-size --deepep-config --elastic-ep-backend
--mooncake-ib-device --mamba-scheduler-strategy --mamba-track-interval --hicache-write-policy --hicache-io-backend
--hicache-mem-layout --hicache-storage-backend --hicache-storage-prefetch-policy
--hicache-storage-backend-extra-config --kt-method --kt-cpuinfer --kt-threadpool-count
--kt-max-deferred-experts-per-token --dllm-algorithm --dllm-algorithm-config --offload-group-size
--offload-num-in-group --offload-prefetch-step --offload-mode --multi-item-scoring-delimiter --cuda-graph-max-bs
--tbo-token-distribution-threshold --piecewise-cuda-graph-compiler --torch-compile-max-bs
--piecewise-cuda-graph-max-tokens --triton-attention-num-kv-splits --triton-attention-split-tile-size
--num-continuous-decode-steps --scheduler-recv-interval --rl-on-policy-target --dsa-prefill-cp-mode
--dynamic-batch-tokenizer-batch-size --dynamic-batch-tokenizer-batch-timeout --disaggregation-transfer-backend
--disaggregation-bootstrap-port --disaggregation-ib-device --num-reserved-decode-tokens
--disaggregation-decode-polling-interval --encoder-transfer-backend --mm-process-config
"""
_SGLANG_MANY = """
--lora-paths --lora-target-modules --cuda-graph-bs --piecewise-cuda-graph-tokens --numa-node --log-requests-target
--bucket-time-to-first-token --bucket-inter-token-latency --bucket-e2e-request-latency --prompt-tokens-buckets
--generation-tokens-buckets --tokenizer-metrics-allowed-custom-labels --uvicorn-access-log-exclude-prefixes
--debug-tensor-dump-layers --custom-weight-loader --encoder-urls --prefill-delayer-forward-passes-buckets
--prefill-delayer-wait-seconds-buckets
"""
_SGLANG_SET = """
--trust-remote-code --skip-tokenizer-init --enable-multimodal --grpc-mode --skip-server-warmup --enable-fp32-lm-head
--quantize-and-serve --enable-quant-communications --enable-dynamic-chunking --enable-priority-scheduling
--abort-on-priority-when-disabled --schedule-low-priority-values-first --enable-prefill-delayer
--incremental-streaming-output --constrained-json-disable-any-whitespace --sleep-on-idle --log-requests
--show-time-cost --enable-metrics --enable-mfu-metrics --enable-metrics-for-all-schedulers
--collect-tokens-histogram --enable-request-time-stats-logging --enable-trace --export-metrics-to-file
--enable-cache-report --enable-lora-overlap-loading --disable-flashinfer-autotune --enable-multi-layer-eagle
--enable-flashinfer-allreduce-fusion --enable-aiter-allreduce-fusion --enable-fused-grouped-gemm-combine
--enable-expert-distribution-metrics --enable-elastic-expert-backup --enable-deepep-waterfill --elastic-ep-rejoin
--disable-cuda-graph-padding --enable-profile-cuda-graph --enable-cudagraph-gc --enable-layerwise-nvtx-marker
--enable-nccl-nvls --enable-symm-mem --disable-flashinfer-cutlass-moe-fp4-allgather
--enable-tokenizer-batch-encode --disable-tokenizer-batch-decode --disable-outlines-disk-cache
--disable-custom-all-reduce --enable-mscclpp --enable-torch-symm-mem --disable-overlap-schedule
--enable-mixed-chunk --enable-two-batch-overlap --enable-single-batch-overlap --enable-torch-compile
--enable-torch-compile-debug-mode --disable-piecewise-cuda-graph --enforce-piecewise-cuda-graph
--enable-nan-detection --enable-p2p-check --triton-attention-reduce-in-fp32 --delete-ckpt-after-loading
--enable-memory-saver --enable-weights-cpu-backup --enable-draft-weights-cpu-backup --allow-auto-truncate
--enable-custom-logit-processor --flashinfer-mla-disable-ragged --disable-shared-experts-fusion
--disable-chunked-prefix-cache --disable-fast-image-processor --keep-mm-feature-on-device
--enable-return-hidden-states --enable-return-routed-experts --enable-deterministic-inference
--enable-attn-tp-input-scattered --enable-dsa-prefill-context-parallel --enable-fused-qk-norm-rope
--enable-precise-embedding-interpolation --enable-dynamic-batch-tokenizer --use-modelscope
--disaggregation-decode-enable-offload-kvcache --checkpoint-engine-wait-weights-before-ready
"""

SGLANG = Dialect(
    engine="sglang",
    flags=table(
        rows(_SGLANG),
        plain("value", _SGLANG_UNCOUNTED, UNCOUNTED),
        plain("set", _SGLANG_UNCOUNTED_SET, UNCOUNTED),
        plain("value", _SGLANG_VALUE),
        plain("many", _SGLANG_MANY),
        plain("set", _SGLANG_SET),
    ),
    abbreviates=True,
    suffixes=True,
    source="sglang, docs/advanced_features/server_arguments.md and python/sglang/srt/server_args.py (0.5)",
)
