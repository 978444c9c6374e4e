"""THE table of devices: what memory each has, how fast it reads it and computes, by the sheets of their vendors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

import msgspec

from nilometer.core.errors import SpecError


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One device; rates are of dense matrices, never the sparse ones. None = not stated or not supported."""

    name: str
    kind: str
    """gpu, apple, cpu, ..."""
    memory_bytes: float
    """What its label says."""
    visible_bytes: float | None = None
    """What its driver shows to a program."""
    bandwidth_bytes_per_s: float | None
    flops: Mapping[str, float]
    """Precision of the arithmetic (fp16, fp8, int8, fp4) -> operations per second."""
    link_bytes_per_s: float | None = None
    """To a neighbour of the same machine, in one direction."""
    link: str | None = None
    power_w: float | None = None
    confidence: str = "high"
    source: str
    note: str = ""


_TABLE = """
H100-SXM-80G                  gpu         80  79.19 3350  989   1978 1978 -     450 NVLink4        700  high   aic
H100-PCIe-80G                 gpu         80  -     2000  756   1513 1513 -     64  PCIe5          350  high   aic
H100-NVL-94G                  gpu         94  -     3900  835   1671 1671 -     300 NVLink_bridge  400  high   own
H200-SXM-141G                 gpu         141 -     4800  989   1978 1978 -     450 NVLink4        700  high   aic
H800-SXM-80G                  gpu         80  -     3350  989   1978 1978 -     200 NVLink         700  high   servcalc
H20-96G                       gpu         96  -     4000  148   296  296  -     450 NVLink4        400  high   own
A100-SXM-80G                  gpu         80  -     2039  312   -    624  1248  300 NVLink3        400  high   aic
A100-SXM-40G                  gpu         40  39.4  1555  312   -    624  1248  300 NVLink3        400  high   servcalc
A100-PCIe-80G                 gpu         80  -     1935  312   -    624  1248  32  PCIe4          300  high   aic
A800-SXM-80G                  gpu         80  -     2039  312   -    624  1248  200 NVLink         400  high   viewer
A30                           gpu         24  -     933   165   -    330  661   100 NVLink         165  high   sheets
A40                           gpu         48  -     696   150   -    299  599   32  PCIe4          300  high   viewer
A10                           gpu         24  -     600   125   -    250  500   32  PCIe4          150  high   sheets
A10G                          gpu         24  -     600   70    -    140  280   32  PCIe4          300  high   analysis
RTX-A6000                     gpu         48  -     768   155   -    310  619   56  NVLink_bridge  300  high   analysis
RTX-6000-Ada                  gpu         48  -     960   364   728  728  -     32  PCIe4          300  medium servcalc
RTX-PRO-6000-Blackwell-Server gpu         96  -     1792  468   936  936  1871  64  PCIe5          600  high   aic
L40S                          gpu         48  -     864   362   733  733  -     32  PCIe4          350  high   aic
L40                           gpu         48  -     864   181   362  362  -     32  PCIe4          300  high   viewer
L20                           gpu         48  -     864   119.5 239  239  -     32  PCIe4          275  medium sheets
L4                            gpu         24  -     300   121   242  242  -     32  PCIe4          72   high   aic
L2                            gpu         24  -     300   95.6  193  193  -     32  PCIe4          -    medium sheets
T4                            gpu         16  -     320   65    -    130  260   16  PCIe3          70   high   servcalc
V100-SXM-32G                  gpu         32  -     900   125   -    -    -     150 NVLink2        300  high   servcalc
V100-PCIe-16G                 gpu         16  -     900   112   -    -    -     16  PCIe3          250  high   viewer
B200-SXM                      gpu         180 -     7700  2250  4500 4500 9000  900 NVLink5        1000 high   aic
GB200-NVL72                   gpu         189 -     8000  2500  5000 5000 10000 900 NVLink5        1200 high   aic
B300-SXM                      gpu         288 -     7750  2250  4500 153  14000 900 NVLink5        1100 high   aic
GB300                         gpu         288 -     8000  2500  5000 165  15000 900 NVLink5        1400 high   aic
RTX-3090                      gpu         24  23.58 936   71    -    284  568   56  NVLink_bridge  350  medium servcalc
RTX-4090                      gpu         24  23.5  1008  165   330  660  1321  32  PCIe4          450  medium servcalc
RTX-5090                      gpu         32  31.4  1792  210   419  838  1676  64  PCIe5          575  medium servcalc
RTX-4080-Super                gpu         16  -     736   104   -    -    -     32  PCIe4          320  medium servcalc
RTX-4070                      gpu         12  -     504   58    -    -    -     32  PCIe4          200  medium servcalc
RTX-3060-12G                  gpu         12  -     360   25    -    -    -     16  PCIe4          170  medium servcalc
MI210                         gpu         64  -     1638  181   -    181  -     150 IF             300  medium analysis
MI250X                        gpu         128 -     3277  383   -    383  -     200 IF             560  medium analysis
MI300X                        gpu         192 -     5300  1307  2615 2615 -     448 IF             750  high   own
MI325X                        gpu         256 -     6000  1307  2615 2615 -     448 IF             1000 high   own
MI355X                        gpu         288 -     8000  2516  5033 5033 10066 538 IF             1400 medium own
Gaudi2                        accelerator 96  -     2460  432   865  -    -     150 RoCE           600  high   hotchips
Gaudi3                        accelerator 128 -     3670  1835  1835 -    -     600 RoCE           900  high   hotchips
Ascend-910B-64G               accelerator 64  -     -     320   -    640  -     196 HCCS           310  low    own
DGX-Spark-GB10                soc         128 -     273   -     -    -    -     25  -              140  medium own
Apple-M4-Pro                  soc         48  -     273   15    -    -    -     -   unified        70   medium hunter
Apple-M3-Max-40c              soc         128 -     400   -     -    -    -     -   unified        -    medium own
Apple-M4-Max                  soc         128 -     546   34    -    -    -     -   unified        140  medium hunter
Apple-M3-Ultra                soc         512 -     819   57    -    -    -     -   unified        295  medium hunter
EPYC-9654-1S                  cpu         -   -     460.8 -     -    -    -     -   12ch_DDR5-4800 360  medium own
Xeon-8480+-1S                 cpu         -   -     307.2 -     -    -    -     -   8ch_DDR5-4800  350  medium own
Desktop-DDR5-5600-2ch         cpu         -   -     89.6  -     -    -    -     -   2ch_DDR5-5600  -    high   own
Desktop-DDR4-3200-2ch         cpu         -   -     51.2  -     -    -    -     -   2ch_DDR4-3200  -    high   own
"""
"""name kind memory_GB visible_GiB bandwidth_GB/s fp16 fp8 int8 fp4_Tera/s link_GB/s link watts confidence source

Rates are of dense matrices; "-" = not stated or not supported; visible = what the driver shows a program.
"""

_SOURCES = {
    "aic": "aiconfigurator 0.12 systems yaml",
    "servcalc": "servcalc 0.1.0 gpus.py (vendor sheets, fp32 accumulate)",
    "viewer": "hahnyuan/LLM-Viewer hardware_params.py",
    "sheets": "arthurchiao.art/blog/gpu-data-sheets",
    "analysis": "llm-analysis 0.2.2 gpu_configs",
    "hunter": "gpuhunter.io",
    "hotchips": "Hot Chips 2024 slides (sgpjbg.com 465025)",
    "H100-NVL-94G": "jishuzhan.net/article/1872432607539499010 (sheet gives sparse figures; halved)",
    "H20-96G": "taoguba 2551318 and zangshuxian pages (148 TFLOPS 4.0 TB/s 900 GB/s)",
    "MI300X": "github.com/alpharomercoma/MI300X-vs-H200 REPORT.md",
    "MI325X": "docs.vultr.com rocm hardware-requirements",
    "MI355X": "capacity: rocm.docs.amd.com gpu-specs; rates from memory: check",
    "Ascend-910B-64G": "arthurchiao.art and boardor.com and jishuzhan.net",
    "DGX-Spark-GB10": "common knowledge; PyPI sparkfit planner targets it",
    "Apple-M3-Max-40c": "clawtopic.com post",
    "EPYC-9654-1S": "12 x 38.4 GB/s computed",
    "Xeon-8480+-1S": "8 x 38.4 GB/s computed",
    "Desktop-DDR5-5600-2ch": "LV (i9-13900K 89.6 GB/s)",
    "Desktop-DDR4-3200-2ch": "2 x 25.6 GB/s computed",
}

_NOTES = {
    "H100-SXM-80G": "vLLM sees 79.19 GiB",
    "H100-PCIe-80G": "NVLink bridge 300 optional",
    "A800-SXM-80G": "link cut to 400 GB/s both ways",
    "A10G": "AWS variant with lower tensor rate",
    "RTX-PRO-6000-Blackwell-Server": "rates as scaled to 2430 MHz in the source",
    "T4": "no bf16; AC page says 400 GB/s: conflict",
    "V100-SXM-32G": "no bf16; int8 without tensor cores",
    "B200-SXM": "vendor sheet: 192 GB and 8 TB/s; usable 180",
    "B300-SXM": "int8 tensor rate removed on purpose",
    "RTX-3090": "142 with fp16 accumulate",
    "RTX-4090": "330 with fp16 accumulate; fp8 with fp32 accumulate",
    "MI210": "source file gives int8 362; AMD sheet 181: conflict",
    "MI250X": "two dies; source file says 3200 GB/s",
    "Ascend-910B-64G": "bandwidth conflicts in sources (400, 768): none stated",
}

_ALIASES = {
    "H100-SXM-80G": "h100 h100-80g h100-80gb-hbm3 h100-sxm h100-sxm5",
    "H100-PCIe-80G": "h100-pcie",
    "H100-NVL-94G": "h100-nvl",
    "H200-SXM-141G": "h200 h200-sxm",
    "H800-SXM-80G": "h800",
    "H20-96G": "h20",
    "A100-SXM-80G": "a100 a100-80g a100-sxm a100-sxm4-80gb",
    "A100-SXM-40G": "a100-40g a100-sxm4-40gb",
    "A100-PCIe-80G": "a100-pcie a100-80gb-pcie",
    "A800-SXM-80G": "a800",
    "RTX-A6000": "a6000",
    "RTX-6000-Ada": "6000-ada rtx-6000-ada-generation",
    "RTX-PRO-6000-Blackwell-Server": "pro-6000 rtx-pro-6000 rtx-pro-6000-blackwell-server-edition",
    "V100-SXM-32G": "v100 v100-32g v100-sxm2-32gb",
    "V100-PCIe-16G": "v100-pcie v100-16g v100-pcie-16gb",
    "B200-SXM": "b200",
    "GB200-NVL72": "gb200",
    "B300-SXM": "b300",
    "RTX-3090": "3090",
    "RTX-4090": "4090",
    "RTX-5090": "5090",
    "RTX-4080-Super": "4080-super",
    "RTX-4070": "4070",
    "RTX-3060-12G": "3060 rtx-3060",
    "Ascend-910B-64G": "910b ascend-910b",
    "DGX-Spark-GB10": "dgx-spark gb10",
    "Apple-M4-Pro": "m4-pro",
    "Apple-M3-Max-40c": "m3-max",
    "Apple-M4-Max": "m4-max",
    "Apple-M3-Ultra": "m3-ultra",
    "EPYC-9654-1S": "epyc-9654",
    "Xeon-8480+-1S": "xeon-8480+ xeon-8480",
    "Desktop-DDR5-5600-2ch": "ddr5 ddr5-5600",
    "Desktop-DDR4-3200-2ch": "ddr4 ddr4-3200",
}
"""Other names, those that drivers give included; case, blanks, dashes and the vendor's name do not count."""

_VENDORS = re.compile(r"\b(nvidia|geforce|tesla|quadro|amd|instinct|radeon|apple|intel|huawei)\b")
_GIB = 2.0**30
_NEAREST = 5


def _device(line: str) -> Device:
    name, kind, memory, visible, bandwidth, *rates, link_rate, link, power, confidence, source = line.split()
    number = {key: None if text == "-" else float(text) for key, text in zip(_RATES, rates, strict=True)}
    return Device(
        name=name,
        kind=kind,
        memory_bytes=(_number(memory) or 0.0) * 1e9,
        visible_bytes=None if visible == "-" else float(visible) * _GIB,
        bandwidth_bytes_per_s=None if bandwidth == "-" else float(bandwidth) * 1e9,
        flops={key: value * 1e12 for key, value in number.items() if value is not None},
        link_bytes_per_s=None if link_rate == "-" else float(link_rate) * 1e9,
        link=None if link == "-" else link.replace("_", " "),
        power_w=_number(power),
        confidence=confidence,
        source=_SOURCES[name if source == "own" else source],
        note=_NOTES.get(name, ""),
    )


def _number(text: str) -> float | None:
    return None if text == "-" else float(text)


_RATES = ("fp16", "fp8", "int8", "fp4")

DEVICES: Mapping[str, Device] = {one.name: one for one in map(_device, _TABLE.strip().splitlines())}
"""THE table, by name. A memory of 0 = as much as was built in (processors)."""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", _VENDORS.sub("", name.lower()))


_BY_NAME: Mapping[str, str] = {
    _plain(other): name for name in DEVICES for other in (name, *_ALIASES.get(name, "").split())
}


def device(name: str) -> Device:
    """The device of that name or alias, whatever its case, dashes and vendor; SpecError with the nearest names."""
    known = _BY_NAME.get(_plain(name))
    if known is None:
        raise SpecError("device_unknown", name=name, nearest=", ".join(nearest(name)))
    return DEVICES[known]


def nearest(name: str) -> tuple[str, ...]:
    """Names of the table that look like it, best first; where none does, some that are common."""
    close = get_close_matches(_plain(name), list(_BY_NAME), n=_NEAREST, cutoff=0.5)
    found = dict.fromkeys(_BY_NAME[one] for one in close)
    return tuple(found) or ("H100-SXM-80G", "A100-SXM-80G", "L40S", "RTX-4090", "Apple-M4-Max")


def device_of(
    bandwidth_bytes_per_s: float,
    flops: float,
    memory_bytes: float = 0.0,
    *,
    name: str = "given",
    kind: str = "gpu",
    source: str = "given by you",
) -> Device:
    """A device from two numbers: how fast it reads its memory and computes (fp16; other precisions at the same rate).

    SpecError where one is not a number above 0.
    """
    for key, value, least in (("bandwidth", bandwidth_bytes_per_s, 0.0), ("flops", flops, 0.0)):
        if not least < value < float("inf"):
            raise SpecError("device_rate_unusable", key=key, value=value)
    return Device(
        name=name,
        kind=kind,
        memory_bytes=memory_bytes,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        flops={"fp16": flops},
        confidence="given",
        source=source,
    )
