"""A service's part of Firebreak: counts go out, the table comes in, hot keys are answered from memory."""
import json, threading, time, urllib.parse, urllib.request

# Bytes of a key that stand for themselves in reports and tables; the others are percent-encoded.
PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "%,:#")


class Firebreak:
    def __init__(self, hub, token, service, host, cluster, max_stale_seconds=1.0):
        self.hub, self.token, self.service, self.host, self.cluster = hub, token, service, host, cluster
        self.max_stale_seconds, self.known = max_stale_seconds, {}
        self.strategies, self.valid_until, self.interval = {}, 0.0, 0.1
        self.counts, self.cache, self.lock = {}, {}, threading.Lock()
        for work in (self.report, self.watch):
            threading.Thread(target=self.repeat, args=(work,), daemon=True).start()

    def get(self, key, load):
        """The value of a key (bytes): from memory while the hub says LocalCache, else from `load(key)`."""
        text = urllib.parse.quote_from_bytes(key, safe=PLAIN)
        with self.lock:
            self.counts[text] = self.counts.get(text, 0) + 1
        now = time.monotonic()
        strategy = self.strategies.get(text) if now < self.valid_until else None
        if strategy is None or strategy["strategy"] != "LocalCache":
            return load(key)
        kept = self.cache.get(text)  # Looked up once: `watch` may put another dictionary there at any time.
        if kept is None or now >= kept[1]:
            kept = self.cache[text] = load(key), now + min(strategy["expireTime"], self.max_stale_seconds)
        return kept[0]

    def report(self):
        time.sleep(self.interval)
        with self.lock:
            counts, self.counts = self.counts, {}
        now, quote = int(time.time() * 1000), lambda name: urllib.parse.quote(name, safe=PLAIN)
        entries = ",".join(f"{text}:{count}" for text, count in counts.items())
        body = f"# {now},{now},{quote(self.service)},{quote(self.host)}\n# {quote(self.cluster)}\n{entries}\n"
        if counts:
            self.call("/v1/reports", 10, body.encode(), {"Content-Type": "text/plain"})

    def watch(self):
        query = {"service": self.service, "cluster": self.cluster, "instance": self.host, "waitMs": 20000}
        table = json.loads(self.call("/v1/table?" + urllib.parse.urlencode({**query, **self.known}), 30))
        self.known = {"epoch": table["epoch"], "version": table["version"]}
        entries = [] if table["isOff"] else table["clusters"].get(self.cluster, [])
        self.strategies = {key: entry for entry in entries for key in entry["keys"]}
        self.cache = {text: kept for text, kept in list(self.cache.items()) if text in self.strategies}
        self.valid_until, self.interval = time.monotonic() + table["validMs"] / 1000, table["intervalMs"] / 1000

    def repeat(self, work):
        while True:
            try:
                work()
            except Exception as error:  # Whatever it is, reads go on; without a hub the table ends by itself.
                print(f"firebreak: {work.__name__}: {error!r}", flush=True)
                time.sleep(1)

    def call(self, path, timeout, body=None, headers={}):
        request = urllib.request.Request(self.hub + path, body, {**headers, "Authorization": f"Bearer {self.token}"})
        return urllib.request.urlopen(request, timeout=timeout).read()
