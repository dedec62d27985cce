#!/usr/bin/env python3
"""What an ordinary client of Watershed notices while others attack the server.

    Benchmarks/attackers.py path/to/watershed [--seconds 20] [--connections 5000] [--only NAME …]

The ordinary client looks a record up, saves one and asks for changes, again and again, from an address
of its own. It is measured alone, then during each attack, which comes from another address and another
account. The attackers' processes are niced: they would have machines of their own. The figures are the
latency that 95 of 100 requests stay under, its ratio to the quiet one, the server's memory, and what
lies on its disk.
"""

import argparse, asyncio, http.client, json, multiprocessing, os, pathlib, resource, shutil
import socket, statistics, subprocess, sys, tempfile, time, types, urllib.parse

ATTACKER, CLIENT = "127.0.0.2", "127.0.0.3"
RECORD = 700_000  # bytes of the attacker's large records


def memory(process, name):
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise SystemExit("the server is gone")


def disk(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


class Account:
    """A person who is signed in, and whose requests come from one address."""

    def __init__(self, server, name, address):
        self.server, self.address, self.connection = server, address, None
        body = {"userName": name, "password": f"{name}'s long password",
                "container": server.container}
        reply = self.post(f"/account/sign-in?ckAPIToken={server.api_token}", body)
        self.tokens = urllib.parse.urlencode({
            "ckAPIToken": server.api_token, "ckWebAuthToken": reply["webAuthToken"]})

    def path(self, verb):
        place = f"{self.server.container}/{self.server.environment}"
        return f"/database/1/{place}/private/{verb}?{self.tokens}"

    def send(self, path, body, method="POST"):
        """Status and body; waits where the server asks for it."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        while True:
            if not self.connection:
                self.connection = http.client.HTTPConnection(
                    "127.0.0.1", self.server.port, timeout=60, source_address=(self.address, 0))
            try:
                self.connection.request(method, path, data)
                response = self.connection.getresponse()
                reply = response.read()
            except (OSError, http.client.HTTPException):
                self.connection.close()
                self.connection = None
                raise
            return response.status, reply, response.headers

    def post(self, path, body):
        while True:
            status, reply, headers = self.send(path, body)
            if status in (429, 503):
                time.sleep(float(headers.get("retry-after", 1)))
                continue
            if status >= 300:
                raise SystemExit(f"{path[:60]}: {status} {reply[:300]}")
            return json.loads(reply)

    def save(self, zone, records):
        return self.post(self.path("records/modify"), {
            "zoneID": {"zoneName": zone}, "operations": [
                {"operationType": "forceUpdate", "record": record} for record in records]})

    def make_zone(self, zone):
        self.post(self.path("zones/modify"), {"operations": [
            {"operationType": "create", "zone": {"zoneID": {"zoneName": zone}}}]})


def record(name, size=40, **more):
    values = {"text": "x" * size, **more}
    return {"recordName": name, "recordType": "Note",
            "fields": {key: {"value": value} for key, value in values.items()}}


# MARK: The ordinary client


def ordinary(server, seconds, results):
    """Latencies of a client that does what an app does."""
    client = Account(server, "ordinary", CLIENT)
    waits, failures, number = [], 0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number += 1
        for verb, body in [
            ("records/lookup", {"zoneID": {"zoneName": "mine"}, "records": [{"recordName": "r1"}]}),
            ("records/modify", {"zoneID": {"zoneName": "mine"}, "operations": [
                {"operationType": "forceUpdate", "record": record(f"r{number % 50}")}]}),
            ("changes/database", {})]:
            began = time.monotonic()
            try:
                status, _, _ = client.send(client.path(verb), body)
                failures += status >= 300
            except (OSError, http.client.HTTPException):
                failures += 1
            waits.append(time.monotonic() - began)
        time.sleep(0.05)
    waits.sort()
    results.put((waits[len(waits) * 19 // 20], statistics.median(waits), len(waits), failures))


# MARK: Attacks


async def raw(server):
    return await asyncio.open_connection(
        "127.0.0.1", server.port, local_addr=(ATTACKER, 0))


async def hold(server, count, work):
    """Keeps so many connections, and opens another for each that ends."""
    async def one():
        while True:
            try:
                reader, writer = await raw(server)
                try:
                    await work(reader, writer)
                finally:
                    writer.close()
            except OSError:
                pass
            await asyncio.sleep(0.2)

    await asyncio.gather(*[one() for _ in range(count)])


def slow_bodies(server, mallory):
    async def work(reader, writer):
        writer.write(f"POST {mallory.path('records/query')} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     "Content-Length: 1000000\r\n\r\n".encode())
        while not reader.at_eof():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(1)

    asyncio.run(hold(server, 500, work))


def unproven_bodies(server, mallory):
    """Bodies of 60 MB behind made-up user tokens: the head alone is to be refused."""
    path = mallory.path("records/modify").split("ckWebAuthToken=")[0] + "ckWebAuthToken=made-up"
    piece = bytes(256 << 10)

    async def work(reader, writer):
        writer.write(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     f"Content-Length: {60 << 20}\r\n\r\n".encode())
        for _ in range((60 << 20) // len(piece)):
            writer.write(piece)
            await writer.drain()
        await reader.read(1)

    asyncio.run(hold(server, 64, work))


def slow_heads(server, mallory):
    async def work(reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n")
        for number in range(1000):
            writer.write(f"X-{number}: y\r\n".encode())
            await writer.drain()
            await asyncio.sleep(1)

    asyncio.run(hold(server, 500, work))


def unread_answers(server, mallory):
    body = json.dumps({"zones": [{"zoneID": {"zoneName": "fat"}}]}).encode()

    async def work(reader, writer):
        writer.transport.set_write_buffer_limits(0)
        writer.write(f"POST {mallory.path('changes/zone')} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        reader._transport.pause_reading()
        await asyncio.sleep(30)

    asyncio.run(hold(server, 200, work))


def connections(server, mallory):
    async def work(reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        while await reader.read(4096):
            pass

    asyncio.run(hold(server, server.connections, work))


def repeat(server, threads, work):
    """Calls the work in so many threads for ever; what is refused is asked again at once."""
    import threading

    def loop(number):
        while True:
            try:
                work(number)
            except (OSError, http.client.HTTPException, SystemExit):
                time.sleep(0.05)

    for number in range(threads):
        threading.Thread(target=loop, args=[number], daemon=True).start()
    time.sleep(3600)


def copies(mallory, count):
    """The account on connections of their own."""
    made = []
    for _ in range(count):
        account = Account.__new__(Account)
        account.__dict__.update(mallory.__dict__, connection=None)
        made.append(account)
    return made


def hashing(server, mallory):
    senders = copies(mallory, 40)

    def work(number):
        senders[number].send(f"/account/sign-in?ckAPIToken={server.api_token}", {
            "userName": f"nobody{number}-{time.monotonic_ns()}", "password": "wrong password",
            "container": server.container})

    repeat(server, 40, work)


def queries(server, mallory):
    senders = copies(mallory, 40)
    query = {"zoneID": {"zoneName": "many"}, "resultsLimit": 1, "query": {
        "recordType": "Note",
        "filterBy": [{"comparator": "BEGINS_WITH", "fieldName": "text",
                      "fieldValue": {"value": "x"}}],
        "sortBy": [{"fieldName": "a"}, {"fieldName": "b"}, {"fieldName": "text"}]}}
    repeat(server, 40, lambda number: senders[number].send(
        mallory.path("records/query"), query))


def fat_replies(server, mallory):
    senders = copies(mallory, 16)
    body = {"zones": [{"zoneID": {"zoneName": "fat"}}]}
    repeat(server, 16, lambda number: senders[number].send(mallory.path("changes/zone"), body))


def uploads(server, mallory):
    senders = copies(mallory, 16)
    file = bytes(20 << 20)

    def work(number):
        status, reply, _ = senders[number].send(mallory.path("assets/upload"), {
            "zoneID": {"zoneName": "many"},
            "tokens": [{"recordType": "Note", "fieldName": "file"}]})
        if status != 200:
            time.sleep(0.05)
            return
        url = urllib.parse.urlsplit(json.loads(reply)["tokens"][0]["url"])
        # The same address again: it takes one file.
        for _ in range(3):
            senders[number].send(url.path, file)

    repeat(server, 16, work)


ATTACKS = {
    "slow bodies": slow_bodies, "slow heads": slow_heads, "unread answers": unread_answers,
    "unproven bodies": unproven_bodies, "connections": connections, "hashing": hashing, "queries": queries,
    "fat replies": fat_replies, "uploads": uploads}


def attack(name, server, mallory):
    os.nice(10)
    ATTACKS[name](server, mallory)


# MARK: The run


def start(program, folder, connections):
    data = folder / "data"
    process = subprocess.Popen(
        [program, "serve", "--data", data, "--port", "0", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "WATERSHED_USER_QUOTA": str(500_000_000)})
    facts = json.loads(process.stdout.readline())
    for name in ["ordinary", "mallory"]:
        subprocess.run(
            [program, "users", "add", name, "--data", data, "--password-stdin"],
            input=f"{name}'s long password\n", text=True, check=True, stdout=subprocess.DEVNULL)
    return types.SimpleNamespace(
        process=process.pid, handle=process, data=data, connections=connections,
        port=urllib.parse.urlsplit(facts["url"]).port, api_token=facts["apiToken"],
        container=facts["container"], environment=facts["environment"])


def prepare(server):
    mine = Account(server, "ordinary", CLIENT)
    mine.make_zone("mine")
    mine.save("mine", [record(f"r{number}") for number in range(50)])
    mallory = Account(server, "mallory", ATTACKER)
    for zone in ["fat", "many"]:
        mallory.make_zone(zone)
    for number in range(40):
        mallory.save("fat", [record(f"f{number}", RECORD)])
    for batch in range(60):
        mallory.save("many", [
            record(f"m{batch}-{number}", a=batch * number % 997, b=number) for number in range(200)])
    for account in [mine, mallory]:
        account.connection.close()
        account.connection = None
    return mallory


def measured(server, seconds, name, mallory):
    results = multiprocessing.Queue()
    attacker = None
    if name:
        attacker = multiprocessing.Process(
            target=attack, args=(name, server, mallory), daemon=True)
        attacker.start()
        time.sleep(min(5, seconds / 2))
    client = multiprocessing.Process(
        target=ordinary, args=(server, seconds, results), daemon=True)
    client.start()
    found = results.get()
    client.join()
    if attacker:
        attacker.kill()
        attacker.join()
        # What was under way ends before the next attack begins.
        time.sleep(min(5, seconds / 2))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("watershed", help="the program, built with -c release")
    parser.add_argument("--seconds", type=float, default=20, help="of each attack")
    parser.add_argument("--connections", type=int, default=5000, help="of one address")
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), default=list(ATTACKS))
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="watershed-attackers-"))
    server = start(options.watershed, folder, options.connections)
    try:
        mallory = prepare(server)
        print(f"{'':16}{'95 of 100':>12}{'median':>12}{'ratio':>8}{'requests':>10}{'failed':>8}"
              f"{'memory':>10}{'disk':>10}", flush=True)

        def line(name, found, ratio):
            late, median, count, failures = found
            print(f"{name:16}{late * 1000:9.1f} ms{median * 1000:9.1f} ms{ratio:7.1f}×{count:10}"
                  f"{failures:8}{memory(server.process, 'VmRSS'):7.0f} MB"
                  f"{disk(server.data):7.0f} MB", flush=True)

        quiet = measured(server, options.seconds, None, mallory)
        line("quiet", quiet, 1)
        for name in options.only:
            found = measured(server, options.seconds, name, mallory)
            line(name, found, found[0] / quiet[0])
        print(f"most memory: {memory(server.process, 'VmHWM'):.0f} MB")
    finally:
        server.handle.terminate()
        server.handle.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
