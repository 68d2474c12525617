#!/usr/bin/env bash
# Stands in for systemctl where there is no systemd: starts, stops and describes one service, that of play.sh.
# PLAY names the folder that holds its process id and what is known of its last start, PORT and MODULE what it is given.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)

stop() {
    if [[ -f $PLAY/pid ]]; then
        kill "$(cat "$PLAY/pid")"
        while kill -0 "$(cat "$PLAY/pid")" 2>/dev/null; do sleep 0.1; done
        rm "$PLAY/pid" "$PLAY/unit"
    fi
}

start() {
    setsid python3 "$here/payments.py" "$PORT" "$MODULE" >/dev/null 2>&1 </dev/null &
    echo $! > "$PLAY/pid"
    disown
    until (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; do sleep 0.1; done
    cat > "$PLAY/unit" <<END
LoadState=loaded
ActiveState=active
MainPID=$(cat "$PLAY/pid")
InvocationID=$(tr -d - < /proc/sys/kernel/random/uuid)
ActiveEnterTimestampMonotonic=$(python3 -c 'import time; print(time.monotonic_ns() // 1000)')
END
}

case $1 in
    show) cat "$PLAY/unit" ;;
    start) start ;;
    stop) stop ;;
    restart) stop && start ;;
    *) echo "stand-in-systemctl.sh: $1 is none of show, start, stop and restart" >&2 && exit 1 ;;
esac
