"""The same work on several threads at once."""

import threading

PATIENCE_SECONDS = 60


def run_all(work, count=4):
    """Calls work(i) on `count` threads; nothing may raise or hang."""
    errors = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
    assert errors == []
