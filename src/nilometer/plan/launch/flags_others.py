"""The tables of flags and variables of TGI, llama.cpp and Ollama, and the table of all engines' dialects."""

from __future__ import annotations

from collections.abc import Mapping

from .flags import SGLANG, UNCOUNTED, VLLM, Dialect, Flag, plain, rows, table

_TGI = """
word   model          --model-id
count  context        --max-total-tokens
count  batched_tokens --max-batch-prefill-tokens
count  kv_tokens      --max-batch-total-tokens
count  max_seqs       --max-batch-size
count  admitted       --max-concurrent-requests
share  utilisation    --cuda-memory-fraction
count  tensor         --num-shard
switch sharded        --sharded
graphs eager          --cuda-graphs
word   quantisation   --quantize
word   dtype          --dtype
word   key_precision  --kv-cache-dtype
"""
_TGI_UNCOUNTED = "--speculate --rope-scaling --rope-factor --lora-adapters"
_TGI_VALUE = """
--revision --validation-workers --max-best-of --max-stop-sequences --max-top-n-tokens --max-input-tokens
--max-input-length --waiting-served-ratio --max-waiting-tokens --hostname --port,-p --shard-uds-path --master-addr
--master-port --huggingface-hub-cache --weights-cache-override --otlp-endpoint --otlp-service-name
--cors-allow-origin --api-key --watermark-gamma --watermark-delta --ngrok-authtoken --ngrok-edge
--tokenizer-config-path --max-client-batch-size --usage-stats --payload-limit --prometheus-port --graceful-shutdown
--max-image-fetch-size
"""
_TGI_SET = """
--trust-remote-code --disable-custom-kernels --json-output --ngrok --disable-grammar-support --env,-e
--enable-prefill-logprobs --help,-h --version,-V
"""
_TGI_FLAGS = table(
    rows(_TGI), plain("value", _TGI_UNCOUNTED, UNCOUNTED), plain("value", _TGI_VALUE), plain("set", _TGI_SET)
)

TGI = Dialect(
    engine="tgi",
    flags=_TGI_FLAGS,
    env={
        **{flag.name[2:].replace("-", "_").upper(): flag for flag in _TGI_FLAGS.values()},
        "PREFIX_CACHING": Flag("PREFIX_CACHING", "on", "prefix_caching"),
        "USE_PREFIX_CACHING": Flag("USE_PREFIX_CACHING", "on", "prefix_caching"),
        "HF_MODEL_ID": Flag("HF_MODEL_ID", "word", "model"),
        "SM_NUM_GPUS": Flag("SM_NUM_GPUS", "count", "tensor"),
        "HF_MODEL_QUANTIZE": Flag("HF_MODEL_QUANTIZE", "word", "quantisation"),
    },
    source="text-generation-inference, docs/source/reference/launcher.md (3.x): each flag has its variable",
)

_LLAMACPP = """
word   model          --model -m
word   repository     --hf-repo -hf -hfr
word   hf_file        --hf-file -hff
llama  context        --ctx-size -c
open   slots          --parallel -np
count  batched_tokens --batch-size -b
count  ubatch         --ubatch-size -ub
open   threads        --threads -t
switch flash          --flash-attn -fa
word   key_precision  --cache-type-k -ctk
word   value_precision --cache-type-v -ctv
set    unified        --kv-unified -kvu
off    unified        --no-kv-unified -no-kvu
set    full_windows   --swa-full
set    prefix_caching --cache-prompt
off    prefix_caching --no-cache-prompt
set    continuous     --cont-batching -cb
off    continuous     --no-cont-batching -nocb
list   devices        --tensor-split -ts
"""
_LLAMACPP_UNCOUNTED = """
--n-gpu-layers,-ngl,--gpu-layers --override-tensor,-ot --n-cpu-moe,-ncmoe --n-cpu-ffn,-ncffn --moe-cache-mib
--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor
--yarn-beta-slow --yarn-beta-fast --spec-draft-model,-md,--model-draft --spec-draft-hf,-hfd,-hfrd,--hf-repo-draft
--mmproj,-mm --mmproj-url,-mmu --lora --lora-scaled --control-vector --control-vector-scaled --kv-unified-per-slot
--split-mode,-sm --rpc --override-kv --lazy-mode,-lzm --spec-draft-type-k,-ctkd,--cache-type-k-draft
--spec-draft-type-v,-ctvd,--cache-type-v-draft --spec-type --models-dir --models-preset --fit,-fit --grp-attn-n,-gan
--grp-attn-w,-gaw
"""
_LLAMACPP_UNCOUNTED_SET = "--cpu-moe,-cmoe --no-kv-offload,-nkvo --embedding,--embeddings --rerank,--reranking"
_LLAMACPP_VALUE = """
--threads-batch,-tb --cpu-mask,-C --cpu-range,-Cr --cpu-strict --prio --poll --cpu-mask-batch,-Cb
--cpu-range-batch,-Crb --cpu-strict-batch --prio-batch --poll-batch --predict,-n,--n-predict --keep --defrag-thold,-dt
--load-mode,-lm --numa --device,-dev --main-gpu,-mg --fit-target,-fitt --fit-ctx,-fitc --control-vector-layer-range
--model-url,-mu --docker-repo,-dr --hf-token,-hft --log-file --log-colors --verbosity,-lv,--log-verbosity --samplers
--seed,-s --sampler-seq,--sampling-seq --temp,--temperature --top-k --top-p --min-p --top-nsigma,--top-n-sigma
--xtc-probability --xtc-threshold --typical,--typical-p --repeat-last-n --repeat-penalty --presence-penalty
--frequency-penalty --dry-multiplier --dry-base --dry-allowed-length --dry-penalty-last-n --dry-sequence-breaker
--adaptive-target --adaptive-decay --dynatemp-range --dynatemp-exp --mirostat --mirostat-lr --mirostat-ent
--logit-bias,-l --grammar --grammar-file --json-schema,-j --json-schema-file,-jf --lookup-cache-static,-lcs
--lookup-cache-dynamic,-lcd --ctx-checkpoints,-ctxcp,--swa-checkpoints --checkpoint-min-step,-cms --cache-ram,-cram
--reverse-prompt,-r --pooling --mmproj-device,-mmdev --image-min-tokens --image-max-tokens --mtmd-batch-max-tokens
--video-fps --video-timestamp-interval --video-ffmpeg-dir --alias,-a --tags --embd-normalize --host --port --path
--cors-origins --cors-methods --cors-headers --api-prefix --ui-config,--webui-config
--ui-config-file,--webui-config-file --tools --tools-runtime --mcp-servers-config --mcp-servers-json --api-key
--api-key-file --ssl-key-file --ssl-cert-file --chat-template-kwargs --timeout,-to --sse-ping-interval
--threads-http --cache-reuse --slot-save-path --media-path --models-max --reasoning-format --reasoning,-rea
--reasoning-effort --reasoning-budget --reasoning-budget-message --chat-template --chat-template-file
--slot-prompt-similarity,-sps --sleep-idle-seconds --log-prompts-dir --spec-draft-threads,-td,--threads-draft
--spec-draft-threads-batch,-tbd,--threads-batch-draft --spec-draft-n-max --spec-draft-n-min --spec-synth-len
--spec-synth-rates --spec-draft-p-split,--draft-p-split --spec-draft-p-min,--draft-p-min --spec-draft-sampling
--spec-draft-device,-devd,--device-draft --spec-draft-ngl,-ngld,--gpu-layers-draft,--n-gpu-layers-draft
--draft-max,--draft,--draft-n --draft-min,--draft-n-min --ctx-size-draft,-cd --spec-ngram-mod-n-min
--spec-ngram-mod-n-max --spec-ngram-mod-n-match --spec-ngram-simple-size-n --spec-ngram-simple-size-m
--spec-ngram-simple-min-hits --spec-ngram-map-k-size-n --spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits
--spec-ngram-map-k4v-size-n --spec-ngram-map-k4v-size-m --spec-ngram-map-k4v-min-hits --system-prompt-file,-spf
"""
_LLAMACPP_SET = """
--perf --no-perf --escape,-e --no-escape --kv-offload,-kvo --repack --no-repack,-nr --no-host --list-devices
--check-tensors --op-offload --no-op-offload --log-disable --log-jsonl --no-log-jsonl --verbose,-v,--log-verbose
--offline --log-prefix --no-log-prefix --log-timestamps --no-log-timestamps --ignore-eos --backend-sampling,-bs
--cache-idle-slots --no-cache-idle-slots --context-shift --no-context-shift --special,-sp --warmup --no-warmup
--spm-infill --mmproj-auto --no-mmproj --no-mmproj-auto --mmproj-offload --no-mmproj-offload --reuse-port
--cors-credentials --no-cors-credentials --ui-mcp-proxy,--webui-mcp-proxy --no-ui-mcp-proxy,--no-webui-mcp-proxy
--agent,-ag --no-agent,-no-ag --ui,--webui --no-ui,--no-webui --metrics --props --slots --no-slots --models-autoload
--no-models-autoload --jinja --no-jinja --reasoning-preserve --no-reasoning-preserve --skip-chat-parsing
--no-skip-chat-parsing --prefill-assistant --no-prefill-assistant --lora-init-without-apply
--spec-draft-cpu-moe,-cmoed,--cpu-moe-draft --spec-draft-backend-sampling --no-spec-draft-backend-sampling
--spec-default --mlock --no-mmap --mmap --direct-io,-dio --no-direct-io,-ndio --help,-h,--usage --version
--cache-list,-cl --completion-bash --embd-gemma-default --fim-qwen-1.5b-default --fim-qwen-3b-default
--fim-qwen-7b-default --fim-qwen-7b-spec --fim-qwen-14b-spec --fim-qwen-30b-default --gpt-oss-20b-default
--gpt-oss-120b-default --vision-gemma-4b-default --vision-gemma-12b-default
"""
_LLAMACPP_ENV = """
word   model          LLAMA_ARG_MODEL
word   repository     LLAMA_ARG_HF_REPO
word   hf_file        LLAMA_ARG_HF_FILE
llama  context        LLAMA_ARG_CTX_SIZE
open   slots          LLAMA_ARG_N_PARALLEL
count  batched_tokens LLAMA_ARG_BATCH
count  ubatch         LLAMA_ARG_UBATCH
open   threads        LLAMA_ARG_THREADS
switch flash          LLAMA_ARG_FLASH_ATTN
word   key_precision  LLAMA_ARG_CACHE_TYPE_K
word   value_precision LLAMA_ARG_CACHE_TYPE_V
on     unified        LLAMA_ARG_KV_UNIFIED
on     full_windows   LLAMA_ARG_SWA_FULL
on     prefix_caching LLAMA_ARG_CACHE_PROMPT
on     continuous     LLAMA_ARG_CONT_BATCHING
off    continuous     LLAMA_ARG_NO_CONT_BATCHING
list   devices        LLAMA_ARG_TENSOR_SPLIT
"""
_LLAMACPP_ENV_UNCOUNTED = """
LLAMA_ARG_N_GPU_LAYERS LLAMA_ARG_SPLIT_MODE LLAMA_ARG_OVERRIDE_TENSOR LLAMA_ARG_CPU_MOE LLAMA_ARG_N_CPU_MOE
LLAMA_ARG_ROPE_SCALING_TYPE LLAMA_ARG_ROPE_SCALE LLAMA_ARG_ROPE_FREQ_BASE LLAMA_ARG_ROPE_FREQ_SCALE
LLAMA_ARG_YARN_ORIG_CTX LLAMA_ARG_KV_OFFLOAD LLAMA_ARG_NO_KV_OFFLOAD LLAMA_ARG_MMPROJ LLAMA_ARG_MMPROJ_URL
LLAMA_ARG_SPEC_DRAFT_MODEL LLAMA_ARG_MODEL_DRAFT LLAMA_ARG_SPEC_TYPE LLAMA_ARG_RPC LLAMA_ARG_FIT
LLAMA_ARG_KV_UNIFIED_PER_SLOT LLAMA_ARG_MOE_CACHE_MIB LLAMA_ARG_N_CPU_FFN LLAMA_ARG_EMBEDDINGS LLAMA_ARG_MODELS_DIR
"""
_LLAMACPP_ENV_VALUE = """
LLAMA_ARG_N_PREDICT LLAMA_ARG_PERF LLAMA_ARG_REPACK LLAMA_ARG_NO_HOST LLAMA_ARG_DEFRAG_THOLD LLAMA_ARG_LOAD_MODE
LLAMA_ARG_LAZY_MODE LLAMA_ARG_NUMA LLAMA_ARG_DEVICE LLAMA_ARG_MAIN_GPU LLAMA_ARG_FIT_TARGET LLAMA_ARG_FIT_CTX
LLAMA_ARG_MODEL_URL LLAMA_ARG_DOCKER_REPO LLAMA_ARG_LOG_FILE LLAMA_ARG_HOST LLAMA_ARG_PORT LLAMA_ARG_ALIAS
LLAMA_ARG_TAGS LLAMA_ARG_CTX_CHECKPOINTS LLAMA_ARG_CACHE_RAM LLAMA_ARG_CONTEXT_SHIFT LLAMA_ARG_POOLING
LLAMA_ARG_TIMEOUT LLAMA_ARG_THREADS_HTTP LLAMA_ARG_CACHE_REUSE LLAMA_ARG_ENDPOINT_METRICS LLAMA_ARG_ENDPOINT_PROPS
LLAMA_ARG_ENDPOINT_SLOTS LLAMA_ARG_JINJA LLAMA_ARG_THINK LLAMA_ARG_REASONING LLAMA_ARG_CHAT_TEMPLATE
LLAMA_ARG_CHAT_TEMPLATE_FILE LLAMA_ARG_API_PREFIX LLAMA_ARG_UI LLAMA_ARG_NO_WEBUI LLAMA_ARG_SSL_KEY_FILE
LLAMA_ARG_SSL_CERT_FILE LLAMA_ARG_STATIC_PATH LLAMA_ARG_API_KEY_FILE LLAMA_ARG_MODELS_MAX LLAMA_ARG_LOG_VERBOSITY
LLAMA_ARG_NO_MMAP LLAMA_ARG_MLOCK LLAMA_ARG_TOP_K LLAMA_ARG_TOP_P LLAMA_ARG_MIN_P LLAMA_ARG_TEMPERATURE
LLAMA_ARG_OFFLINE LLAMA_ARG_RERANKING
"""

LLAMACPP = Dialect(
    engine="llama.cpp",
    flags=table(
        rows(_LLAMACPP),
        plain("value", _LLAMACPP_UNCOUNTED, UNCOUNTED),
        plain("set", _LLAMACPP_UNCOUNTED_SET, UNCOUNTED),
        plain("value", _LLAMACPP_VALUE),
        plain("set", _LLAMACPP_SET),
    ),
    env=table(
        rows(_LLAMACPP_ENV), plain("value", _LLAMACPP_ENV_UNCOUNTED, UNCOUNTED), plain("value", _LLAMACPP_ENV_VALUE)
    ),
    prefix="LLAMA_ARG_",
    source="llama.cpp, tools/server/README.md, made from common/arg.cpp",
)

_OLLAMA_ENV = """
open   context        OLLAMA_CONTEXT_LENGTH
open   slots          OLLAMA_NUM_PARALLEL
word   key_precision  OLLAMA_KV_CACHE_TYPE
on     flash          OLLAMA_FLASH_ATTENTION
"""
_OLLAMA_ENV_UNCOUNTED = "OLLAMA_GPU_OVERHEAD OLLAMA_MAX_VRAM OLLAMA_MAX_LOADED_MODELS OLLAMA_SCHED_SPREAD"
_OLLAMA_ENV_VALUE = """
OLLAMA_DEBUG OLLAMA_HOST OLLAMA_KEEP_ALIVE OLLAMA_MAX_KEEP_ALIVE OLLAMA_LLM_LIBRARY OLLAMA_LOAD_TIMEOUT
OLLAMA_MAX_QUEUE OLLAMA_MODELS OLLAMA_NOHISTORY OLLAMA_NOPRUNE OLLAMA_ORIGINS OLLAMA_MULTIUSER_CACHE
OLLAMA_NEW_ENGINE OLLAMA_NEW_ESTIMATES OLLAMA_INTEL_GPU OLLAMA_RUNNERS_DIR OLLAMA_TMPDIR OLLAMA_HOME OLLAMA_REMOTES
OLLAMA_VULKAN OLLAMA_NO_CLOUD OLLAMA_EDITOR OLLAMA_AUTH OLLAMA_USE_AUTH
"""
_OLLAMA_PARAMETERS = """
word   model          FROM
count  context        num_ctx
count  ubatch         num_batch
open   threads        num_thread
"""
_OLLAMA_PARAMETERS_UNCOUNTED = "num_gpu main_gpu use_mmap use_mlock low_vram ADAPTER DRAFT"
_OLLAMA_PARAMETERS_VALUE = """
num_predict repeat_last_n repeat_penalty temperature seed stop top_k top_p min_p num_keep typical_p tfs_z mirostat
mirostat_eta mirostat_tau presence_penalty frequency_penalty penalize_newline numa f16_kv vocab_only draft_num_predict
"""

OLLAMA = Dialect(
    engine="ollama",
    flags=table(
        plain("word", "--model", "model"),
        plain("value", "--keepalive --format --think"),
        plain("set", "--verbose --nowordwrap --insecure --hidethinking --help,-h"),
    ),
    env=table(rows(_OLLAMA_ENV), plain("value", _OLLAMA_ENV_UNCOUNTED, UNCOUNTED), plain("value", _OLLAMA_ENV_VALUE)),
    prefix="OLLAMA_",
    source="ollama, envconfig/config.go",
)
PARAMETERS = Dialect(
    engine="ollama",
    flags=table(
        rows(_OLLAMA_PARAMETERS),
        plain("value", _OLLAMA_PARAMETERS_UNCOUNTED, UNCOUNTED),
        plain("value", _OLLAMA_PARAMETERS_VALUE),
    ),
    source="ollama, docs/modelfile.md and api/types.go (Options)",
)
"""The PARAMETER lines of a Modelfile."""

DIALECTS: Mapping[str, Dialect] = {one.engine: one for one in (VLLM, SGLANG, TGI, LLAMACPP, OLLAMA)}
"""THE table of engines whose command lines are understood."""
