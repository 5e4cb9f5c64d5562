#!/usr/bin/env python3
"""Checks that the folders of the house include only downwards, and that no file includes itself in a circle.

    scripts/check_arrows.py [--root FOLDER] [--report]

Prints one line per wrong include, "file:line: why", and exits 1 if there is any. --report also prints facts that
are no errors: the density of #if and the files over 300 lines.
"""

import argparse
import pathlib
import re
import sys

SOURCES = {".h", ".hpp", ".cc", ".c"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<((?:weft)/[^>]+)>)')

# A part is a folder whose files share one rule. The longest prefix that fits a file is its part.
# To each part: what its files may include besides files of the part itself. A trailing "/" means everything below.
MEMORY = ["device/memory.h", "device/types.h"]
CONTRACT = ["collectives/contract.h", "collectives/shape.h", "device/types.h"]
PLANNING = ["base/", "topology/", "collectives/plan/", *CONTRACT]
PUBLIC = ["include/weft/"]
ROOT_OF = lambda folder: folder + "/*"  # Files directly in the folder, none below.

RULES = {
    "include/weft/": [],
    "base/": [],
    "topology/": ["base/"],
    "device/": ["base/"],
    "transport/": ["base/", *MEMORY],
    "bootstrap/": ["base/"],
    "collectives/plan/": ["base/", "topology/", *CONTRACT],
    "collectives/algorithms/": PLANNING,
    "collectives/select/": [*PLANNING, "collectives/algorithms/"],
    "collectives/engine/": ["base/", "topology/", "collectives/plan/", *CONTRACT, "device/", ROOT_OF("transport")],
    "collectives/c_abi/": ["base/", "topology/", "device/", "transport/", "bootstrap/", "collectives/", *PUBLIC],
    "collectives/": ["base/", "topology/", "device/", "transport/", "bootstrap/", "collectives/", *PUBLIC],
    "tools/": ["base/", "topology/", "device/", ROOT_OF("transport"), "bootstrap/", ROOT_OF("collectives"),
               "collectives/plan/", "collectives/algorithms/", "collectives/select/", "collectives/c_abi/", *PUBLIC],
    "bench/": ["base/", "topology/", "device/", "transport/", "bootstrap/", "collectives/", *PUBLIC],
    "integrations/": ["topology/", *PUBLIC],
    "examples/": PUBLIC,
    "tests/": ["base/", "topology/", "device/", "transport/", "bootstrap/", "collectives/", "tools/", "bench/", *PUBLIC],
}

# Files at the root of these folders are interfaces, those in a subfolder implementations: an interface knows no
# implementation except through the .cc file that makes them, and one implementation does not know another.
WITH_IMPLEMENTATIONS = ["transport"]


def part_of(path):
    fits = [part for part in RULES if path.startswith(part)]
    return max(fits, key=len, default=None)


def matches(path, pattern):
    if pattern.endswith("/*"):
        folder = pattern[:-1]
        return path.startswith(folder) and "/" not in path[len(folder):]
    return path.startswith(pattern) if pattern.endswith("/") else path == pattern


def implementation_of(path):
    """("transport", "shm") for transport/shm/x.cc, (folder, None) for an interface, None elsewhere."""
    words = path.split("/")
    if words[0] not in WITH_IMPLEMENTATIONS:
        return None
    return (words[0], words[1]) if len(words) > 2 else (words[0], None)


def why_wrong(source, target):
    """Why `source` may not include `target` (both relative to the root), or None if it may."""
    part = part_of(source)
    if part is None:
        return "this folder has no rule in check_arrows.py"
    # A bench lies next to what it measures and a test mirrors it: both may look at everything.
    if source.endswith(("_bench.cc", "_test.cc")):
        part = "tests/"
    target_part = part_of(target)
    if target_part is None:
        return f"includes {target}, which is in no folder of the house"
    if target_part == "tests/" and part != "tests/":
        return f"includes {target}: only tests include tests"
    if target_part != part and not any(matches(target, pattern) for pattern in RULES[part]):
        return f"includes {target}: {part} may not include it"
    here, there = implementation_of(source), implementation_of(target)
    if part != "tests/" and here and there and here[0] == there[0] and there[1] is not None and here[1] != there[1]:
        if here[1] is not None:
            return f"includes {target}: one implementation knows another"
        if not source.endswith(".cc"):
            return f"includes {target}: an interface knows an implementation"
    return None


def find_sources(root):
    for part in sorted(RULES):
        folder = root / part
        if part.count("/") > 1 and part != "include/weft/":
            continue  # Below a folder that is looked through anyway.
        for path in sorted(folder.rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path


def read_includes(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1) or found.group(2)


def resolve(root, source, name):
    """The file that an include names, relative to the root; None if it is none of ours."""
    for base in (root, root / "include", source.parent):
        path = base / name
        if path.is_file() and root in path.resolve().parents:
            return path.resolve().relative_to(root).as_posix()
    return None


def find_circle(graph):
    """A list of files that include each other in a circle, or None."""
    done = set()
    for start in graph:
        trail, on_trail = [], set()
        stack = [(start, iter(graph[start]))] if start not in done else []
        if stack:
            trail.append(start)
            on_trail.add(start)
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                trail.pop()
                on_trail.discard(node)
                done.add(node)
            elif following in on_trail:
                return trail[trail.index(following):] + [following]
            elif following not in done and following in graph:
                stack.append((following, iter(graph[following])))
                trail.append(following)
                on_trail.add(following)
    return None


def report(root, sources):
    num_lines = num_ifs = 0
    long_files = []
    for path in sources:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        num_lines += len(lines)
        num_ifs += sum(1 for line in lines if re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b", line))
        if len(lines) > 300:
            long_files.append((len(lines), path.relative_to(root).as_posix()))
    density = 1000 * num_ifs / max(num_lines, 1)
    print(f"{len(sources)} files, {num_lines} lines, {density:.1f} #if per 1000 lines (target: under 1)")
    print(f"{len(long_files)} files over 300 lines (target: under 10 %)")
    for length, name in sorted(long_files, reverse=True):
        print(f"    {length:5} {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    root = arguments.root.resolve()

    sources = list(find_sources(root))
    if not sources:
        print(f"check_arrows: no sources under {root}", file=sys.stderr)
        return 1
    errors = []
    graph = {}
    for path in sources:
        source = path.relative_to(root).as_posix()
        graph[source] = []
        for line, name in read_includes(path):
            target = resolve(root, path, name)
            if target is None:
                if not name.startswith("build/") and part_of(name) is not None:
                    errors.append(f"{source}:{line}: includes {name}, which does not exist")
                continue
            graph[source].append(target)
            why = why_wrong(source, target)
            if why:
                errors.append(f"{source}:{line}: {why}")
    circle = find_circle(graph)
    if circle:
        errors.append(f"{circle[0]}:1: includes go in a circle: {' -> '.join(circle)}")

    if arguments.report:
        report(root, sources)
    for error in errors:
        print(error)
    if not errors:
        print(f"check_arrows: {len(sources)} files, every include points downwards")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
