"""Reads one key of a Redis over and over, protected: python3 demo.py HUB_URL REDIS_HOST REDIS_PORT KEY"""
import os, socket, sys, time

from firebreak_client import Firebreak

hub, redis_host, redis_port, key = sys.argv[1:5]
redis = socket.create_connection((redis_host, int(redis_port))).makefile("rwb")
reads = 0


def load(name):
    """GET over the socket: Redis answers `$LENGTH`, then the bytes."""
    global reads
    reads += 1
    redis.write(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(name), name))
    redis.flush()
    length = int(redis.readline()[1:])
    return None if length < 0 else redis.read(length + 2)[:length]


service = os.environ.get("SERVICE", "shop")
firebreak = Firebreak(hub, os.environ.get("FIREBREAK_TOKEN"), service, "python-1", "main")
answers, second, before = 0, time.monotonic() + 1, (0, 0)
while True:
    value = firebreak.get(key.encode(), load)
    answers += 1
    time.sleep(0.001)
    if time.monotonic() >= second:
        print(f"answers {answers - before[0]}, of Redis {reads - before[1]}, value {value!r}", flush=True)
        before, second = (answers, reads), second + 1
