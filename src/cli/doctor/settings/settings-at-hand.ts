// The settings at hand: those that cannot be used, or else the parts that the gateway would make of them.

import { type Auth, createProviderAccess } from '../../../auth/auth.ts';
import { createKeySet, type KeySet } from '../../../auth/key-set.ts';
import {
  createProviderEndpoints,
  createProviderMetadata,
  type ProviderEndpoints,
  type ProviderMetadata,
} from '../../../auth/provider-metadata.ts';
import type { Config } from '../../../config/config.ts';
import type { ProviderConfig } from '../../../config/groups/provider.ts';
import { loadConfig } from '../../../config/load.ts';
import {
  describeMisspelled,
  findMisspelledVariables,
  type MisspelledVariable,
} from '../../../config/misspelled.ts';
import { ConfigError, formatProblem } from '../../../config/problem.ts';
import { createServerUrls, type ServerUrls } from '../../../config/server-urls.ts';
import type { Env } from '../../../config/setting.ts';
import { noMetrics } from '../../../telemetry/metrics/metrics.ts';
import type { Setup } from '../../../upstreams/catalog/plan.ts';
import { readSetup } from '../../setup/config-file/read-setup.ts';
import { type Finding, failure, MISSPELLED, type Report, warning } from '../finding.ts';
import type { Instruments } from '../instruments.ts';

export interface SettingsAtHand extends Instruments, UsableSettings {
  /** Undefined where nobody has to log in, and nobody can. */
  readonly access: ProviderAtHand | undefined;
  readonly serverUrls: ServerUrls;
  close(): void;
}

export interface ProviderAtHand {
  readonly provider: ProviderConfig;
  readonly metadata: ProviderMetadata;
  readonly endpoints: ProviderEndpoints;
  readonly keySet: KeySet;
  readonly auth: Auth;
}

export function openSettingsAtHand(options: Instruments & UsableSettings): SettingsAtHand {
  const { config, setup, clocks, clock, log } = options;
  const { fetch } = clocks;
  const { provider } = config.oauth;
  const isServer = (name: string) =>
    setup?.file.servers.some((server) => server.name === name) ?? false;
  const serverUrls = createServerUrls(config.server.baseUrl, provider?.audience, isServer);
  const deps = { fetch, clock, log, metrics: noMetrics };
  const metadata = provider && createProviderMetadata({ issuer: provider.issuer, ...deps });
  const keySet = metadata && createKeySet({ url: provider?.jwksUrl, metadata, ...deps });
  const { auth } = createProviderAccess(config, {
    isServer,
    isServerAudience: serverUrls.isAudience,
    keySet,
    ...deps,
  });
  return {
    ...options,
    serverUrls,
    access:
      provider === undefined || metadata === undefined || keySet === undefined
        ? undefined
        : {
            provider,
            metadata,
            keySet,
            auth,
            endpoints: createProviderEndpoints(config.oauth.endpoints, metadata),
          },
    close() {
      keySet?.close();
      auth.close();
    },
  };
}

export interface UsableSettings {
  readonly config: Config;
  /** Of the configuration file; undefined without one. */
  readonly setup: Setup | undefined;
  /** Where they are from. */
  readonly env: Env;
}

interface ReadSettings {
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
      return { findings: parsed.problems.map(formatProblem).map(refuse), usable: undefined };
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
  judge(MISSPELLED, {
    what: describeMisspelled(one),
    setting: one.nearest,
    remedy: `rename it to ${one.nearest}, if that is what you meant.`,
  });

/** A problem begins with its variable, or with the file. */
const refuse = (problem: string): Finding => {
  const [, variable] = /^([A-Z][A-Z0-9_]+)\b/.exec(problem) ?? [];
  return failure('settings', {
    what: problem,
    ...(variable === undefined ? {} : { setting: variable }),
  });
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
