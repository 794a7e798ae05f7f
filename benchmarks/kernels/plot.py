"""The plots: bars of times in copies of the same bytes, where matplotlib is installed."""

from pathlib import Path
from typing import Any

from kernels.cases import LAYOUTS, Column, Table, columns
from kernels.targets import fastest_peer, kernel, target

__all__ = ["draw"]

_FIGURES = {
    "quantize": ("quantize", "Quantize float32 to int8, one scale"),
    "fake-quantize": ("fake quantize", "Fake quantize float32, one scale"),
    "dequantize": ("dequantize", "Dequantize int8 to float32, one scale"),
    "gradients": ("backward, x and parameters", "Gradients of fake quantize by x, scale and zero point, float32"),
    "minimum-and-maximum": ("aminmax", "Minimum and maximum in one go, float32, per tensor"),
}
_OURS, _FALLBACK, _EXACT, _OTHER, _LIMIT = "#0b66c3", "#9cc3ea", "#6b7280", "#c3c8d0", "#b42318"
_PATCH = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # behind numbers, over lines
_SETTINGS = {
    "svg.hashsalt": "halfeven",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
}


def draw(content: dict[str, Any], out: Path, form: str = "svg") -> tuple[list[str], str]:
    """The names of the files written, and why there are none."""
    try:
        import matplotlib as mpl
    except ImportError:
        return [], "No plots: matplotlib is not installed (`pip install 'halfeven[benchmark]'`)."
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    groups = {
        (Table(**g["table"]), str(Column(**g["column"]))): g
        for g in content["groups"]
        if g["rows"] and g["column"]["size"] != "call"
    }
    out.mkdir(parents=True, exist_ok=True)
    names = []
    with plt.rc_context(_SETTINGS):
        for name, (operation, title) in _FIGURES.items():
            if figure := _figure(plt, groups, Table(operation, "float32", "tensor"), title):
                names.append(_saved(plt, figure, out / f"{name}.{form}"))
        if figure := _layouts(plt, groups):
            names.append(_saved(plt, figure, out / f"layouts.{form}"))
    return names, ""


def _saved(plt: Any, figure: Any, path: Path) -> str:
    given = {"metadata": {"Date": None}} if path.suffix == ".svg" else {"dpi": 110}
    figure.savefig(path, bbox_inches="tight", **given)
    plt.close(figure)
    return path.name


def _figure(plt: Any, groups: dict[Any, Any], table: Table, title: str) -> Any:
    """A panel per size: bars for one thread, diamonds for two."""
    sizes = {
        str(c).rpartition(",")[0]: {n: g for n in (1, 2) if (g := groups.get((table, str(c._replace(threads=n)))))}
        for c in columns(table)
    }
    panels = [(size, found) for size, found in sizes.items() if 1 in found]
    if not panels:
        return None
    most = max(len(found[1]["rows"]) for _, found in panels)
    figure, axes = plt.subplots(1, len(panels), figsize=(5.4 * len(panels), 1.3 + 0.27 * most), squeeze=False)
    for axis, (size, found) in zip(axes[0], panels, strict=True):
        _panel(axis, found)
        axis.set_title(f"{size}: {found[1]['elements'] / 2**20:.3g} Mi elements", loc="left", fontsize=9)
    _legend(plt, figure)
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=11)
    figure.tight_layout(w_pad=3)
    return figure


def _panel(axis: Any, found: dict[int, dict[str, Any]]) -> None:
    rows = sorted(found[1]["rows"], key=lambda row: row["ratio"][1], reverse=True)
    second = {row["name"]: row["ratio"][1] for row in found[2]["rows"]} if 2 in found else {}
    for y, row in enumerate(rows):
        ratio, ours = row["ratio"][1], row["role"] != "peer"
        # On a logarithmic axis a bar has no natural foot but the copy: what is faster reaches left.
        axis.barh(y, ratio - 1, left=1, color=_color(row), height=0.66)
        reach = max(ratio, second.get(row["name"], ratio), 1)
        axis.annotate(f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}", (reach, y), (5, 0), textcoords="offset points",
                      va="center", fontsize=8, fontweight="bold" if ours else "normal", bbox=_PATCH)  # fmt: skip
        if row["name"] in second:
            axis.plot(second[row["name"]], y, "D", ms=3.6, mfc="white", mec="#111827", mew=0.9, zorder=3)
    axis.set_yticks(range(len(rows)), [row["name"] for row in rows])
    for label, row in zip(axis.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if row["role"] == "kernels" else "normal")
    axis.tick_params(axis="y", length=0)
    _limits(axis, [r for row in rows for r in (row["ratio"][1], second.get(row["name"], 1.0))], target(found[1]))


def _color(row: dict[str, Any]) -> str:
    if row["role"] == "peer":
        return _OTHER if any(row["differences"]) else _EXACT
    return _OURS if row["role"] == "kernels" else _FALLBACK


def _limits(axis: Any, ratios: list[float], most: float | None) -> None:
    """The axis, the copy and the target."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    axis.set_xscale("log")
    axis.set_xlim(min(0.5, 0.85 * min(ratios)), 1.6 * max(2.0, *ratios))
    axis.xaxis.set_major_locator(FixedLocator([0.5, 1, 2, 5, 10, 20, 50, 100]))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axis.minorticks_off()
    axis.grid(axis="x", color="#e5e7eb", linewidth=0.7)
    axis.set_axisbelow(True)
    axis.axvline(1, color=_LIMIT, linewidth=1.4)
    if most is not None:
        axis.axvline(most, color=_OURS, linewidth=1, linestyle=(0, (3, 2)))


def _legend(plt: Any, figure: Any) -> None:
    patch, line = plt.Rectangle, plt.Line2D
    shown = [
        (patch((0, 0), 1, 1, color=_OURS), "halfeven (pale: without a compiler)"),
        (patch((0, 0), 1, 1, color=_EXACT), "peer, exact"),
        (patch((0, 0), 1, 1, color=_OTHER), "peer, not exact"),
        (line([], [], marker="D", ls="", ms=4, mfc="white", mec="#111827"), "2 threads (bars: 1)"),
        (line([], [], color=_LIMIT), "copy_ of the same bytes"),
        (line([], [], color=_OURS, ls="--"), "target"),
    ]
    handles, labels = zip(*shown, strict=True)
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.01), ncols=6, frameon=False, fontsize=8)


def _layouts(plt: Any, groups: dict[Any, Any]) -> Any:
    """Ours and the fastest peer for every layout and dtype, from memory and in the cache, one thread."""
    wanted = [(o, d) for o in ("quantize", "fake quantize") for d in ("float32", "bfloat16")]
    sizes = ["cache, 1 thread", "memory, 1 thread"]
    tables = [Table(o, d, layout) for o, d in wanted for layout in LAYOUTS]
    sizes = [size for size in sizes if any((table, size) in groups for table in tables)]
    if not sizes:
        return None
    figure, axes = plt.subplots(
        len(sizes), len(wanted), figsize=(13, 0.4 + 2.1 * len(sizes)), sharey="row", squeeze=False
    )
    for line, size in zip(axes, sizes, strict=True):
        for axis, (operation, dtype) in zip(line, wanted, strict=True):
            found = [groups.get((Table(operation, dtype, layout), size)) for layout in LAYOUTS]
            for x, group in enumerate(found):
                _pair(axis, x, group)
            axis.set_yscale("log")
            axis.set_xlim(-0.6, len(LAYOUTS) - 0.4)
            axis.axhline(1, color=_LIMIT, linewidth=1.4)
            axis.set_xticks(
                range(len(LAYOUTS)), [name.replace("blocks of", "blocks\n") for name in LAYOUTS], fontsize=8
            )
            axis.set_title(f"{operation}, {dtype}: {size.partition(',')[0]}", loc="left", fontsize=9)
            axis.yaxis.set_major_locator(_fixed())
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
            axis.minorticks_off()
            axis.grid(axis="y", color="#e5e7eb", linewidth=0.7)
            axis.set_axisbelow(True)
        ratios = [value for axis in line for bar in axis.patches for value in bar.get_bbox().intervaly]
        line[0].set_ylim(0.85 * min(0.7, *ratios), 1.5 * max(2.0, *ratios))  # the row shares it
    title = "Every layout, one thread: halfeven (blue), fastest peer (grey, pale where not exact), target (black)"
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=11)
    figure.tight_layout()
    return figure


def _fixed() -> Any:
    from matplotlib.ticker import FixedLocator

    return FixedLocator([0.5, 1, 2, 5, 10, 20, 50])


def _pair(axis: Any, x: int, group: dict[str, Any] | None) -> None:
    if group is None:
        return
    for shift, row in ((-0.2, kernel(group)), (0.2, fastest_peer(group))):
        if row is None:
            continue
        ratio = row["ratio"][1]
        axis.bar(x + shift, ratio - 1, bottom=1, width=0.36, color=_color(row))
        axis.annotate(
            f"{ratio:.2g}", (x + shift, max(ratio, 1)), (0, 2), textcoords="offset points", ha="center", fontsize=7
        )
    if (most := target(group)) is not None:
        axis.plot([x - 0.42, x + 0.02], [most, most], color="#111827", linewidth=1.2)
