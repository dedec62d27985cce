#!/usr/bin/env python3
"""Watershed's listeners and memory over real sockets.

    Benchmarks/sockets.py path/to/watershed [--listeners 10000] [--database postgresql://…]

Opens so many event streams that wait, measures how soon one of them hears of a commit, then lets
ten clients write and read and four send large files, and says what the server process held at most.
"""

import argparse, asyncio, json, pathlib, resource, shutil, statistics, subprocess, tempfile
import threading, time, types, urllib.parse

import kinto

# The largest that the service takes, and how many come at once.
FILE_SIZE, FILES = 50 << 20, 4


def memory(process, name):
    """In megabytes: `VmRSS` is what it holds now, `VmHWM` what it held at most."""
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise SystemExit("the server is gone")


def stream_path(server, call, is_signed_in):
    tokens = server.tokens if is_signed_in else server.tokens.split("&")[0]
    _, _, version, container, environment, _ = server.base.split("/")
    path = f"/device/{version}/{container}/{environment}/tokens/create?{tokens}"
    reply, _ = call("POST", path, {"apnsEnvironment": "development"})
    return urllib.parse.urlsplit(reply["eventStreamURL"]).path


class Stream(asyncio.Protocol):
    """One listener: counts what it is told."""

    def __init__(self, path):
        self.path, self.opened, self.heard = path, asyncio.Event(), asyncio.Event()

    def connection_made(self, transport):
        transport.write(f"GET {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    def data_received(self, data):
        if not self.opened.is_set():
            if b" 200 " not in data[:20]:
                raise SystemExit(data[:300])
            self.opened.set()
        if b"\ndata:" in data or data.startswith(b"data:"):
            self.heard.set()


async def listen(server, paths):
    loop = asyncio.get_running_loop()
    streams = []
    for start in range(0, len(paths), 200):
        made = await asyncio.gather(*[
            loop.create_connection(lambda path=path: Stream(path), "127.0.0.1", server.port)
            for path in paths[start:start + 200]])
        streams += [stream for _, stream in made]
        for _, stream in made:
            await stream.opened.wait()
    return streams


async def latencies(server, listeners, commits):
    call = kinto.caller(server.port, {**server.headers, "X-Watershed-Capabilities": "1"})
    devices = [stream_path(server, call, False) for _ in range(max(1, listeners // 100))]
    before = memory(server.process, "VmRSS")
    idle = await listen(server, [devices[i % len(devices)] for i in range(listeners)])
    each = (memory(server.process, "VmRSS") - before) * 1000 / max(1, len(idle))
    call("POST", server.path("subscriptions/modify"), {"operations": [
        {"operationType": "create",
         "subscription": {"subscriptionID": "all", "subscriptionType": "database"}}]})
    [stream] = await listen(server, [stream_path(server, call, True)])
    waits = []
    for number in range(commits):
        stream.heard.clear()
        method, path, body = server.batch(0, 1 << 30 | number)
        body["operations"] = body["operations"][:1]
        began = time.monotonic()
        reply = asyncio.get_running_loop().run_in_executor(None, call, method, path, body)
        await stream.heard.wait()
        waits.append(time.monotonic() - began)
        await reply
    waits.sort()
    return each, statistics.median(waits), waits[len(waits) * 19 // 20]


def work(server, batches):
    """Ten clients write and read what they wrote, page by page."""
    def client(number):
        call = server.caller()
        for batch in range(batches):
            call(*server.batch(number, number << 8 | batch))
        token, more = None, True
        while more:
            zone = {"zoneID": server.zone(number), **({"syncToken": token} if token else {})}
            reply, _ = call("POST", server.path("changes/zone"), {"zones": [zone]})
            token, more = reply["zones"][0]["syncToken"], reply["zones"][0]["moreComing"]

    together(client, kinto.CLIENTS)


def together(work, count):
    threads = [threading.Thread(target=work, args=[number]) for number in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()


def send_file(server, zone):
    call = server.caller()
    reply, _ = call("POST", server.path("assets/upload"), {
        "zoneID": server.zone(zone), "tokens": [{"recordType": "Note", "fieldName": "file"}]})
    url = urllib.parse.urlsplit(reply["tokens"][0]["url"])
    connection = kinto.http.client.HTTPConnection("127.0.0.1", server.port)
    chunk = bytes(1 << 20)
    connection.request("POST", url.path, (chunk for _ in range(FILE_SIZE >> 20)),
                       {"Content-Length": str(FILE_SIZE)})
    response = connection.getresponse()
    value = json.loads(response.read())["singleFile"]
    reply, _ = call("POST", server.path("records/modify"), {
        "zoneID": server.zone(zone), "operations": [{"operationType": "create", "record": {
            "recordType": "Note", "fields": {"file": {"type": "ASSETID", "value": value}}}}]})
    url = urllib.parse.urlsplit(reply["records"][0]["fields"]["file"]["value"]["downloadURL"])
    connection.request("GET", f"{url.path}?{url.query}" if url.query else url.path)
    response, size = connection.getresponse(), 0
    while part := response.read(1 << 20):
        size += len(part)
    if size != FILE_SIZE:
        raise SystemExit(f"{size} bytes came back")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("watershed", help="the program, built with -c release")
    parser.add_argument("--listeners", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=201)
    parser.add_argument("--batches", type=int, default=10, help="of each client")
    parser.add_argument("--database", help="a postgresql:// URL; SQLite without")
    options = parser.parse_args()
    # The server inherits the limit, and each listener is a file on both sides.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="watershed-sockets-"))
    database = types.SimpleNamespace(url=options.database) if options.database else None
    server = kinto.Watershed(folder, database, options.watershed)
    try:
        def report(title, value):
            print(f"{title:44}{value}", flush=True)

        report("memory at the start", f"{memory(server.process, 'VmRSS'):.0f} MB")
        each, median, late = asyncio.run(latencies(server, options.listeners, options.commits))
        report(f"memory of each of {options.listeners} listeners", f"{each:.1f} kB")
        report("request to event, median", f"{median * 1000:.1f} ms")
        report("request to event, 95 of 100 are faster", f"{late * 1000:.1f} ms")
        report("most memory with listeners", f"{memory(server.process, 'VmHWM'):.0f} MB")
        work(server, options.batches)
        report("most memory after ten clients' work", f"{memory(server.process, 'VmHWM'):.0f} MB")
        together(lambda zone: send_file(server, zone), FILES)
        report(f"most memory after {FILES} files of {FILE_SIZE >> 20} MB",
               f"{memory(server.process, 'VmHWM'):.0f} MB")
    finally:
        server.process.terminate()
        server.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
