"""python terminal.py [<text> <keys>]… [--until <text>] -- <command …>

Runs a command that insists on a terminal and shows its output. Each time the next <text> appears,
<keys> are typed; at the last text the command is ended."""

import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
import time

at = sys.argv.index("--")
script, command = sys.argv[1:at], sys.argv[at + 1 :]
until = None
if "--until" in script:
    until = script[script.index("--until") + 1]
    script = script[: script.index("--until")]
steps = [(text, keys.encode().decode("unicode_escape")) for text, keys in zip(script[::2], script[1::2])]

pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
seen = ""
while True:
    try:
        output = os.read(terminal, 65536)
    except OSError:
        break
    if not output:
        break
    os.write(1, output)
    seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode(errors="replace"))
    if steps and steps[0][0] in seen:
        seen = ""
        for keys in re.split("(\r)", steps.pop(0)[1]):
            time.sleep(0.5)
            os.write(terminal, keys.encode())
    elif not steps and until is not None and until in seen:
        time.sleep(0.5)
        os.kill(pid, signal.SIGTERM)
        until = None
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)
