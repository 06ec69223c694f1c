"""Installs the locked third-party parts of the pages and copies what browsers are served to static/vendor."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"
VENDOR = HERE / "static" / "vendor"

# What is served, and where it stands in its package.
SERVED = {
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "uplot.js": "uplot/dist/uPlot.esm.js",
    "uplot.css": "uplot/dist/uPlot.min.css",
    "inter.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
    "jetbrains-mono.woff2": "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2",
    "licences/htmx.txt": "htmx.org/LICENSE",
    "licences/uplot.txt": "uplot/LICENSE",
    "licences/lucide.txt": "lucide-static/LICENSE",
    "licences/inter.txt": "@fontsource-variable/inter/LICENSE",
    "licences/jetbrains-mono.txt": "@fontsource-variable/jetbrains-mono/LICENSE",
}
ICON_LIST = HERE / "static" / "icons" / "lucide.txt"
SYMBOL = (
    '<symbol id="{name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" '
    'stroke-linecap="round" stroke-linejoin="round">{shapes}</symbol>'
)


def main() -> None:
    """Make node_modules equal to package-lock.json, then fill static/vendor from it."""
    # No scripts of packages are run: they only bring files, and the lock file's hashes say which.
    npm = Path(sysconfig.get_path("scripts")) / "npm"
    subprocess.run([npm, "ci", "--ignore-scripts", "--loglevel=error"], cwd=HERE, check=True)
    shutil.rmtree(VENDOR, ignore_errors=True)
    for served, source in SERVED.items():
        (VENDOR / served).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(MODULES / source, VENDOR / served)
    drop_source_map_comment(VENDOR / "htmx.min.js")
    put_into_layer(VENDOR / "uplot.css")
    (VENDOR / "icons.svg").write_text(sprite(ICON_LIST.read_text().split()))


def drop_source_map_comment(script: Path) -> None:
    """Take away the pointer to a map that is not served: it would be a 404 in every developer console."""
    script.write_text(re.sub(r"\n//# sourceMappingURL=\S+\s*$", "\n", script.read_text()))


def put_into_layer(sheet: Path) -> None:
    """Wrap a style sheet in our weakest layer, so that every rule of ours is stronger than its rules."""
    sheet.write_text(f"@layer vendor {{{sheet.read_text()}}}\n")


def sprite(names: list[str]) -> str:
    """One SVG with a symbol per icon name; a name that lucide does not know raises FileNotFoundError."""
    symbols = []
    for name in sorted(set(names)):
        source = (MODULES / "lucide-static" / "icons" / f"{name}.svg").read_text()
        inner = re.search(r"<svg[^>]*>(.*)</svg>", source, re.DOTALL)
        if inner is None:
            raise ValueError(f"{name}.svg is not an SVG file")
        symbols.append(SYMBOL.format(name=name, shapes=re.sub(r"\s*\n\s*", "", inner.group(1))))
    return '<svg xmlns="http://www.w3.org/2000/svg">' + "\n".join(symbols) + "</svg>\n"


if __name__ == "__main__":
    main()
