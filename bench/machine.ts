// What a run was made on: figures without it say little.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';

export interface Machine {
  /** Day, in UTC. */
  readonly date: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  /** Before the run, of one minute: above 0, others had work, too. Undefined where nobody looked. */
  readonly loadAverage?: number;
  /** Names and versions of what ran. */
  readonly versions: Readonly<Record<string, string>>;
}

/** To be called before the load. */
export function describeMachine(): Machine {
  return {
    date: new Date().toISOString().slice(0, 10),
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: `Linux ${release()}`,
    loadAverage: loadavg()[0] ?? Number.NaN,
    versions: {
      Postern: readPackage('package.json').version,
      'Node.js': process.versions.node,
      Redis: /v=(\S+)/.exec(printVersion('redis-server'))?.[1] ?? 'unknown',
      wrk: /wrk \S*?([\d.]+)/.exec(printVersion('wrk'))?.[1] ?? 'unknown',
      ioredis: readPackage('package.json').dependencies.ioredis ?? 'unknown',
      ...readPackage('bench/contestants/package.json').dependencies,
    },
  };
}

interface Package {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

function readPackage(file: string): Package {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** wrk prints its version and ends with 1. */
function printVersion(command: string): string {
  try {
    return execFileSync(command, ['--version'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch (error) {
    return error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
  }
}
