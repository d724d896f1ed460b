// The official conformance tool, as a process of its own.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { inFolder, installNpxTool, type NpxTool } from './npx-tool.ts';

export { INSTALLATION_MS } from './npx-tool.ts';

const TOOL = {
  name: '@modelcontextprotocol/conformance@0.2.0-alpha.12',
  command: 'conformance',
} as const;

export type ConformanceTool = NpxTool;

/** By scenario, each of its checks as `id: STATUS`, with the tool's reason where it gives one. */
export type Report = Readonly<Record<string, readonly string[]>>;

export interface Verdict {
  readonly exitCode: number | null;
  /** All that it printed. */
  readonly output: string;
  readonly report: Report;
}

/** Names of scenarios. One has passed if no check of it is a FAILURE: the tool's own measure. */
export interface Score {
  readonly passed: readonly string[];
  readonly failed: readonly string[];
}

export interface ServerVerdict extends Verdict {
  /** What the revision requires: it alone decides the exit code. */
  readonly required: Score;
  /** What the tool runs besides: extensions, and what came after the revision. */
  readonly notScored: Score;
}

export interface ServerErrand {
  /** The MCP endpoint, by the name localhost: one scenario is about that. */
  readonly url: string;
  /** The revision whose scenarios run, on its own wire. */
  readonly requirements: '2025-11-25' | '2026-07-28';
  /** Ends the tool at once: the test's own. */
  readonly signal: AbortSignal;
}

export interface Errand {
  readonly args: readonly string[];
  /** Ends the tool at once: the test's own. */
  readonly signal: AbortSignal;
  /** Goes where the tool asks its user to go. */
  readonly visit?: (url: string) => Promise<void>;
}

export const installConformance = (): Promise<ConformanceTool> => installNpxTool(TOOL);

/** @throws what `visit` throws, and when the tool leaves no results; it has ended in any case. */
export async function runConformance(
  { node, script }: ConformanceTool,
  { args, signal, visit }: Errand,
): Promise<Verdict> {
  return inFolder(async (results) => {
    const child = spawn(node, [script, ...args, '--output-dir', results], {
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
    });
    const closed = once(child, 'close');
    // Looked at below, unless something else went wrong before.
    closed.catch(() => {});
    const printed: string[] = [];
    child.stderr.setEncoding('utf8').on('data', (text: string) => void printed.push(text));
    try {
      for await (const line of createInterface({ input: child.stdout })) {
        printed.push(`${line}\n`);
        if (line.startsWith('http://')) await visit?.(line);
      }
      const [exitCode] = await closed;
      const output = printed.join('');
      return { exitCode, output, report: await readReport(results) };
    } catch (error) {
      throw new Error(`The conformance tool got no further than:\n${printed.join('')}`, {
        cause: error,
      });
    } finally {
      child.kill('SIGKILL');
    }
  });
}

/**
 * Every scenario for servers of one revision.
 * @throws as `runConformance`, and when the tool prints no summary.
 */
export async function runServerConformance(
  tool: ConformanceTool,
  { url, requirements, signal }: ServerErrand,
): Promise<ServerVerdict> {
  const args = ['server', '--url', url, '--requirements', requirements];
  const verdict = await runConformance(tool, { args, signal });
  return { ...verdict, ...readScores(verdict.output) };
}

/** One scenario at the wire of a revision, also where the revision does not name it. */
export function runServerScenario(
  tool: ConformanceTool,
  { url, requirements, scenario, signal }: ServerErrand & { readonly scenario: string },
): Promise<Verdict> {
  const which = ['--scenario', scenario, '--spec-version', requirements, '--force'];
  return runConformance(tool, { args: ['server', '--url', url, ...which], signal });
}

/** All that the tool has for servers. */
export async function listServerScenarios(
  { node, script }: ConformanceTool,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)(node, [script, 'list', '--server'], { signal });
  return [...stdout.matchAll(/^ +- (\S+) \[/gm)].map(([, name = '']) => name);
}

interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

/**
 * From the summary's lines (`✓ ping: 2 passed, 0 failed`), not from the results: a scenario that
 * broke down leaves none. The tool lists what it does not score once more (`  ✗ it (pending)`).
 */
function readScores(output: string): Pick<ServerVerdict, 'required' | 'notScored'> {
  const [, summary] = output.split('=== SUMMARY ===');
  const lines = [...(summary ?? '').matchAll(/^([✓✗]) (\S+): \d+ passed, \d+ failed$/gmu)];
  if (lines.length === 0) throw new Error(`The conformance tool prints no summary:\n${output}`);
  const unscored = new Set(
    [...(summary ?? '').matchAll(/^ {2}[✓✗] (\S+) \(.+\)$/gmu)].map(([, name]) => name),
  );

  function scoreOf(isScored: boolean): Score {
    const named = (mark: string) =>
      lines.flatMap(([, itsMark, name = '']) =>
        itsMark === mark && unscored.has(name) !== isScored ? [name] : [],
      );
    return { passed: named('✓'), failed: named('✗') };
  }

  return { required: scoreOf(true), notScored: scoreOf(false) };
}

/** A folder for each scenario: `server-<scenario>-<time>/checks.json`, or `authorization-server-…`. */
async function readReport(results: string): Promise<Report> {
  const report: Record<string, readonly string[]> = {};
  for (const name of await readdir(results)) {
    const [, scenario] =
      /^(?:authorization-)?server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(name) ?? [];
    if (scenario === undefined) throw new Error(`Not the name of a result: ${name}`);
    const files = await readdir(join(results, name));
    report[scenario] = files.includes('checks.json')
      ? await readChecks(join(results, name, 'checks.json'))
      : [`${scenario}: FAILURE, the scenario broke down`];
  }
  return report;
}

async function readChecks(path: string): Promise<readonly string[]> {
  const checks: readonly Check[] = JSON.parse(await readFile(path, 'utf8'));
  return checks.map(({ id, status, errorMessage }) =>
    errorMessage === undefined ? `${id}: ${status}` : `${id}: ${status}, ${errorMessage}`,
  );
}
