// Prints findings as they come, or all at once as JSON.
import type { Finding } from './finding.ts';
import { renderFinding, renderSummary, toJson } from './render.ts';
import type { Report } from './run-checks.ts';

export interface Printer {
  readonly report: Report;
  finish(findings: readonly Finding[]): void;
}

/** `subject` is what is checked. */
export function createPrinter(subject: string, isJson: boolean): Printer {
  if (isJson)
    return {
      report() {},
      finish: (findings) => console.log(toJson(subject, findings)),
    };
  // `postern doctor | head` closes the pipe while more is to come.
  process.stdout.on('error', () => process.exit());
  const hasColours = wantsColours(process.env, process.stdout.isTTY === true);
  let current: string | undefined;
  console.log(`Checking ${subject}`);
  return {
    report(section, finding) {
      if (section !== current) console.log(`\n${section}`);
      current = section;
      console.log(renderFinding(finding, hasColours));
    },
    finish: (findings) => console.log(`\n${renderSummary(findings)}`),
  };
}

/** https://no-color.org, https://force-color.org */
const wantsColours = (env: NodeJS.ProcessEnv, isTerminal: boolean): boolean =>
  !env.NO_COLOR && (Boolean(env.FORCE_COLOR) || isTerminal);
