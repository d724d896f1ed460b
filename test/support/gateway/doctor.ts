// `postern doctor`, and what it found.
import type { Finding } from '../../../src/cli/doctor/finding.ts';
import { type Env, runPostern } from './process.ts';
import { runInside } from './run-inside.ts';

export interface Diagnosis {
  readonly code: number | null;
  readonly findings: readonly Finding[];
  /** `check` of all findings that are failures. */
  readonly failures: readonly string[];
  /** @throws Error where there is none of this name. */
  find(check: string): Finding;
}

export interface DoctorHow {
  readonly env?: Env;
  readonly args?: readonly string[];
  readonly cwd?: string;
  readonly input?: string;
}

/** With a URL, or without one. */
export async function runDoctor(url: string | undefined, how: DoctorHow = {}): Promise<Diagnosis> {
  const { env = {}, args = [], cwd, input } = how;
  // Node.js reads it at its start.
  const run = 'NODE_EXTRA_CA_CERTS' in env ? runPostern : runInside;
  const { code, stdout, stderr } = await run(env, {
    args: ['doctor', ...(url === undefined ? [] : [url]), '--json', ...args],
    ...(cwd !== undefined && { cwd }),
    input,
  });
  if (stderr !== '') throw new Error(stderr);
  const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
  return {
    code,
    findings,
    failures: findings.flatMap(({ status, check }) => (status === 'failure' ? [check] : [])),
    find(check) {
      const found = findings.find((finding) => finding.check === check);
      if (found === undefined)
        throw new Error(`No ${check} in ${JSON.stringify(findings, null, 1)}`);
      return found;
    },
  };
}
