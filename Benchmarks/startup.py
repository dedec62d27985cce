"""Measures how long commands and a server take to start.

usage: startup.py BINARY [ROUNDS]

Prints the median and the slowest of ROUNDS (21) runs of a release build: `--help`, a server from its start to
the first answer at /health, on an empty and on a filled data folder, `doctor` on both, and an empty `exec`.
The processor time beside it says what a busy machine adds.
"""

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(binary, *arguments):
    subprocess.run([binary, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def serve(binary, folder):
    """Starts a server; returns it and the seconds until it answered."""
    begin = time.perf_counter()
    server = subprocess.Popen(
        [binary, "serve", "--json", "--port", "0", "--data", folder],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )
    address = json.loads(server.stdout.readline())["url"]
    with urllib.request.urlopen(address + "/health") as answer:
        answer.read()
    return server, time.perf_counter() - begin


def stop(server):
    server.send_signal(signal.SIGTERM)
    server.communicate()


def row(name, target, seconds, processor):
    middle, slowest = statistics.median(seconds) * 1000, max(seconds) * 1000
    print(f"| {name} | {middle:.0f} ms | {slowest:.0f} ms | {statistics.median(processor) * 1000:.0f} ms | {target} |")


def measured(rounds, body):
    seconds, processor = [], []
    for _ in range(rounds):
        before = children()
        seconds.append(body())
        processor.append(children() - before)
    return seconds, processor


def timed(binary, *arguments):
    def body():
        begin = time.perf_counter()
        run(binary, *arguments)
        return time.perf_counter() - begin
    return body


def fill(binary, folder):
    """A small server: fifty accounts and fifty records."""
    server, _ = serve(binary, folder)
    place = ["--data", folder, "--container-id", "iCloud.org.example.app", "--user", "demo"]
    for number in range(50):
        subprocess.run(
            [binary, "users", "add", f"user{number}", "--data", folder, "--quiet"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
    for number in range(50):
        fields = json.dumps({"title": {"type": "STRING", "value": f"note {number}"}})
        run(binary, "records", "create", *place, "--record-type", "Note", "--fields-json", fields)
    stop(server)


def main(binary, rounds):
    binary = os.path.abspath(binary)
    os.environ["NO_COLOR"] = "1"
    print(f"{os.path.getsize(binary) / 1e6:.1f} MB, {rounds} rounds\n")
    print("| | median | slowest | processor time | at most |\n|---|---:|---:|---:|---:|")
    row("`--help`", "50 ms", *measured(rounds, timed(binary, "--help")))
    with tempfile.TemporaryDirectory() as place:
        count = 0

        def first_start():
            nonlocal count
            count += 1
            server, seconds = serve(binary, os.path.join(place, f"new{count}"))
            stop(server)
            return seconds

        row("`serve`, first start", "", *measured(rounds, first_start))
        folder = os.path.join(place, "filled")
        fill(binary, folder)

        def next_start():
            server, seconds = serve(binary, folder)
            stop(server)
            return seconds

        row("`serve`, 50 accounts and records", "300 ms", *measured(rounds, next_start))
        row("`doctor`, server stopped", "300 ms", *measured(rounds, timed(binary, "doctor", "--data", folder)))
        server, _ = serve(binary, folder)
        row("`doctor`, server running", "300 ms", *measured(rounds, timed(binary, "doctor", "--data", folder)))
        stop(server)
        row("`exec -- true`, start to end", "", *measured(rounds, timed(binary, "exec", "--", "true")))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 21)
