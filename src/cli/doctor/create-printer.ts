// Prints findings as they come, or all at once as JSON.
import { systemClock } from '../../platform/clock.ts';
import type { Invocation } from '../command/invocation.ts';
import type { Finding } from './finding.ts';
import { findFirstToMend } from './first-to-mend.ts';
import { renderFinding, renderStart, renderSummary, toJson } from './render.ts';
import type { Report } from './run-checks.ts';

export interface Printer {
  readonly report: Report;
  finish(findings: readonly Finding[]): void;
}

export interface PrinterOptions extends Invocation {
  readonly isJson: boolean;
}

/** `subject` is what is checked. */
export function createPrinter(subject: string, options: PrinterOptions): Printer {
  const { isJson, process, console } = options;
  if (isJson)
    return {
      report() {},
      finish: (findings) => console.log(toJson(subject, findings)),
    };
  // `postern doctor | head` closes the pipe while more is to come.
  process.stdout.on('error', () => process.exit());
  const hasColours = wantsColours(process.env, process.stdout.isTTY === true);
  const progress = process.stdout.isTTY === true ? showProgress(process.stdout) : undefined;
  let current: string | undefined;
  console.log(`Checking ${subject}`);
  return {
    report(section, finding) {
      progress?.clear();
      if (section !== current) console.log(`\n${section}`);
      current = section;
      console.log(renderFinding(finding, hasColours));
    },
    finish(findings) {
      progress?.end();
      console.log(`\n${renderSummary(findings)}`);
      const first = findFirstToMend(findings);
      if (first !== undefined) console.log(renderStart(first));
    },
  };
}

const SECOND_MS = 1000;
const ERASE_LINE = '\r\u001b[2K';

/** On a terminal: a last line that counts the seconds while an answer is awaited. */
function showProgress(terminal: NodeJS.WritableStream) {
  let since = systemClock.monotonic();
  const timer = setInterval(() => {
    const seconds = Math.round((systemClock.monotonic() - since) / SECOND_MS);
    terminal.write(`${ERASE_LINE}  … waiting for an answer, ${seconds} s`);
  }, SECOND_MS).unref();
  function clear(): void {
    terminal.write(ERASE_LINE);
    since = systemClock.monotonic();
  }
  return {
    clear,
    end() {
      clearInterval(timer);
      clear();
    },
  };
}

/** https://no-color.org, https://force-color.org */
const wantsColours = (env: NodeJS.ProcessEnv, isTerminal: boolean): boolean =>
  !env.NO_COLOR && (Boolean(env.FORCE_COLOR) || isTerminal);
