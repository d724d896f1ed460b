// The settings at hand: those that cannot be used, or else all that can be found out with them.
import type { Config } from '../../config/config.ts';
import { ConfigError } from '../../config/config-error.ts';
import { loadConfig } from '../../config/load.ts';
import {
  describeMisspelled,
  findMisspelledVariables,
  type MisspelledVariable,
} from '../../config/misspelled.ts';
import type { Env } from '../../config/read-env.ts';
import { readSetup, type Setup } from '../setup/config-file/read-setup.ts';
import { type Finding, failure, MISSPELLED, type Report, warning } from './finding.ts';

export interface UsableSettings {
  readonly config: Config;
  /** Of the configuration file; undefined without one. */
  readonly setup: Setup | undefined;
  /** Where they are from. */
  readonly env: Env;
}

export interface ReadSettings {
  readonly findings: readonly Finding[];
  /** Undefined where they cannot be used. */
  readonly usable: UsableSettings | undefined;
}

/** As `postern start` reads them. */
export async function readSettings(env: Env, report: Report): Promise<ReadSettings> {
  const { findings, usable } = await readAll(env);
  for (const finding of findings) report('Settings', finding);
  return { findings, usable };
}

async function readAll(env: Env): Promise<ReadSettings> {
  try {
    const config = loadConfig(env);
    const misspelled = findMisspelledVariables(env).map((one) => tell(warning, one));
    const { configFile: path } = config.server;
    if (path === undefined)
      return { findings: misspelled, usable: { config, setup: undefined, env } };
    const parsed = await readSetup(path, config, env);
    if (parsed.kind === 'problems')
      return { findings: parsed.problems.map(refuse), usable: undefined };
    const { setup, warnings } = parsed;
    const told = warnings.map((text) => warning('settings.file', text));
    return { findings: [...misspelled, ...told], usable: { config, setup, env } };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { findings: explainProblems(error.problems, env), usable: undefined };
  }
}

/** What is missing because its name is misspelled is told as that alone, and first. */
function explainProblems(problems: readonly string[], env: Env): readonly Finding[] {
  const misspelled = findMisspelledVariables(env);
  const told = misspelled.map(describeMisspelled);
  const isCause = ({ nearest }: MisspelledVariable) =>
    problems.some((problem) => problem.startsWith(describeMissing(nearest)));
  const causes = misspelled.filter(isCause);
  const others = problems.filter(
    (problem) =>
      !told.includes(problem) &&
      !causes.some(({ nearest }) => problem.startsWith(describeMissing(nearest))),
  );
  return [
    ...causes.map((one) => tell(failure, one)),
    ...mentionUrl(others.map(refuse)),
    ...misspelled.filter((one) => !isCause(one)).map((one) => tell(warning, one)),
  ];
}

const describeMissing = (variable: string): string => `${variable} is missing`;

const tell = (judge: typeof failure, one: MisspelledVariable): Finding =>
  judge(MISSPELLED, describeMisspelled(one), {
    setting: one.nearest,
    remedy: `rename it to ${one.nearest}, if that is what you meant.`,
  });

/** A problem begins with its variable, or with the file. */
const refuse = (problem: string): Finding => {
  const [, variable] = /^([A-Z][A-Z0-9_]+)\b/.exec(problem) ?? [];
  return failure('settings', problem, variable === undefined ? {} : { setting: variable });
};

/** Who runs it elsewhere than the gateway meant one that runs. */
const mentionUrl = (findings: readonly Finding[]): readonly Finding[] =>
  findings.map((finding) =>
    finding.what.startsWith(describeMissing('OIDC_ISSUER'))
      ? {
          ...finding,
          remedy:
            "run this in the folder that has the gateway's .env. To check a gateway that runs elsewhere, name it: postern doctor https://mcp.example.com",
        }
      : finding,
  );
