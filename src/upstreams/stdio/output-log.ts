// §18.3: what a server writes beside its messages, in the gateway's log.

import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { createLogThrottle, createWarnThrottle } from '../../platform/log-throttle.ts';
import { shorten } from '../../platform/text.ts';
import type { StdioUpstreamConfig } from '../config/upstream-config.ts';

export interface OutputLog {
  /** A line as it may stand in the log: short, harmless, without secrets. */
  toText(line: Buffer): string;
  /** A line of its error output. */
  writeErrorLine(line: Buffer): void;
  /** A line of its standard output that is no message: as its error output, with a warning once a minute. */
  writeStrayLine(line: Buffer): void;
}

const MAX_CHARACTERS = 1000;

/** Shorter ones of them, such as `1` or `true`, stand in every text. */
const MIN_SECRET = 6;

/** Colours and moves of the cursor (ECMA-48): they say nothing in a log. */
const TERMINAL_SEQUENCES =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)/g;

/** Other control characters, line ends besides LF, and marks that turn the reading direction. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]+/g;

export function createOutputLog(config: StdioUpstreamConfig, log: Log, clock: Clock): OutputLog {
  const { name: server } = config;
  const secrets = listSecretLines([...Object.values(config.env), ...config.secretArguments]);
  const throttle = createLogThrottle(clock, (kind, leftOut) =>
    log.warn(`${leftOut} more lines of the ${kind} of the server ${server} were left out.`, {
      server,
    }),
  );

  function toText(line: Buffer): string {
    let text = line.toString('utf8');
    for (const secret of secrets) text = text.replaceAll(secret, '[secret]');
    return shorten(text.replace(TERMINAL_SEQUENCES, '').replace(CONTROL, ' '), MAX_CHARACTERS);
  }

  function writeLine(kind: string, line: Buffer): void {
    if (!throttle.countLine(kind)) return;
    log.info(`${server}: ${toText(line)}`, { server });
  }

  const warnOfStrayLines = createWarnThrottle(clock, (line: Buffer) =>
    log.warn(
      `The server ${server} wrote to its standard output what is no message of MCP. It was skipped; a server must log to its error output.`,
      { server, line: toText(line) },
    ),
  );

  return {
    toText,
    writeErrorLine(line) {
      if (line.length > 0) writeLine('error output', line);
    },
    writeStrayLine(line) {
      if (line.length === 0) return;
      warnOfStrayLines(line);
      writeLine('standard output', line);
    },
  };
}

/** Long values first, so that none is cut by one that it contains; each line of those with several. */
const listSecretLines = (secrets: readonly string[]): readonly string[] =>
  [...new Set(secrets)]
    .flatMap((value) => value.split('\n'))
    .filter((value) => value.length >= MIN_SECRET)
    .sort((a, b) => b.length - a.length);
