// The settings at hand: those that cannot be used, or else the parts that the gateway would make of them.

import type { Config } from '../../config/config.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import { loadConfig } from '../../config/load.ts';
import {
  describeMisspelled,
  findMisspelledVariables,
  type MisspelledVariable,
} from '../../config/misspelled.ts';
import { ConfigError, formatProblem } from '../../config/problem.ts';
import { createServerUrls } from '../../config/server-urls.ts';
import type { Env } from '../../config/setting.ts';
import {
  createProviderEndpoints,
  openProviderMetadata,
  type ProviderDocument,
} from '../../http/oauth-client/provider-metadata.ts';
import { createProviderAccess } from '../../logins/auth/auth.ts';
import { openKeySet } from '../../logins/auth/key-set.ts';
import { noMetrics } from '../../telemetry/metrics/metrics.ts';
import { readSetup } from '../setup/read-setup.ts';
import {
  type Check,
  type Finding,
  type Found,
  failure,
  MISSPELLED,
  type Report,
  type Row,
  warning,
} from './finding.ts';
import type { Instruments } from './instruments.ts';

export type SettingsAtHand = ReturnType<typeof openSettingsAtHand>;

/** Undefined where nobody has to log in, and nobody can. */
export type ProviderAtHand = NonNullable<SettingsAtHand['access']>;

export function openSettingsAtHand(usable: UsableSettings, instruments: Instruments) {
  const { config, setup } = usable;
  const { clocks, clock, log } = instruments;
  const { fetch } = clocks;
  const { provider } = config.oauth;
  /** Views have paths, too. */
  const isServer = (name: string) =>
    [...(setup?.file.servers ?? []), ...(setup?.file.views ?? [])].some((one) => one.name === name);
  const serverUrls = createServerUrls(config.server.baseUrl, provider?.audience, isServer);
  const runtime = { config, fetch, clock, log, metrics: noMetrics };
  const metadata = provider && openProviderMetadata(runtime, provider);
  const keySet = metadata && openKeySet(runtime, { url: provider?.jwksUrl, metadata });
  const { auth } = createProviderAccess(runtime, isServer, {
    isServerAudience: serverUrls.isAudience,
    keySet,
  });
  return {
    ...usable,
    ...instruments,
    access: provider &&
      metadata &&
      keySet && {
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

/** Undefined in proxy mode, where clients get tokens of the provider. */
export const findBrokerConfig = ({ oauth }: Config): BrokerConfig | undefined =>
  oauth.mode === 'broker' ? oauth : undefined;

/** True once the discovery document was read, or where it is not needed. */
export const isDiscovered = async ({ provider, metadata }: ProviderAtHand): Promise<boolean> =>
  provider.jwksUrl !== undefined ||
  metadata.get().then(
    () => true,
    () => false,
  );

/** A check that asks a provider which was discovered: of others it was said already why not. */
export const defineProviderCheck = (
  section: string,
  run: (settings: SettingsAtHand, access: ProviderAtHand) => Promise<Found>,
): Check<SettingsAtHand> => ({
  section,
  async run(settings) {
    const { access } = settings;
    return access !== undefined && (await isDiscovered(access)) ? run(settings, access) : [];
  },
});

/** A check of what the discovery document says of logins; none where settings name all that it would. */
export const defineDocumentCheck = (
  judge: (
    document: ProviderDocument,
    oauth: BrokerConfig,
    settings: SettingsAtHand,
  ) => readonly Row[],
): Check<SettingsAtHand> =>
  defineProviderCheck('Identity provider', async (settings, { metadata }) => {
    const oauth = findBrokerConfig(settings.config);
    const document = oauth && (await metadata.get().catch(() => undefined));
    return oauth && document && judge(document, oauth, settings);
  });

type UsableSettings = NonNullable<Awaited<ReturnType<typeof readSettings>>>;

/** As `postern start` reads them; undefined where they cannot be used. */
export async function readSettings(env: Env, report: Report) {
  const tell = (...findings: readonly Finding[]): void => {
    for (const finding of findings) report('Settings', finding);
  };
  try {
    const config = loadConfig(env);
    const { configFile: path } = config.server;
    const parsed = path === undefined ? undefined : await readSetup(path, config, env);
    if (parsed?.kind === 'problems') {
      tell(...parsed.problems.map(formatProblem).map(refuse));
      return undefined;
    }
    tell(...findMisspelledVariables(env).map((one) => tellMisspelled(warning, one)));
    tell(...(parsed?.warnings ?? []).map((text) => warning('settings.file', text)));
    /** `setup`: the servers and rules of the configuration file; undefined without one. `env`: the environment they are from. */
    return { config, setup: parsed?.setup, env };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    tell(...explainProblems(error.problems, env));
    return undefined;
  }
}

/** A setting that is missing because its name is misspelled is told as that alone, and first. */
function explainProblems(problems: readonly string[], env: Env): readonly Finding[] {
  const misspelled = findMisspelledVariables(env);
  const told = misspelled.map(describeMisspelled);
  const isAbout = (problem: string, { nearest }: MisspelledVariable) =>
    problem.startsWith(describeMissing(nearest));
  const isCause = (one: MisspelledVariable) => problems.some((problem) => isAbout(problem, one));
  const others = problems.filter(
    (problem) => !told.includes(problem) && !misspelled.some((one) => isAbout(problem, one)),
  );
  return [
    ...misspelled.filter(isCause).map((one) => tellMisspelled(failure, one)),
    ...others.map(refuse).map(mentionUrl),
    ...misspelled.filter((one) => !isCause(one)).map((one) => tellMisspelled(warning, one)),
  ];
}

const describeMissing = (variable: string): string => `${variable} is missing`;

const tellMisspelled = (judge: typeof failure, one: MisspelledVariable): Finding =>
  judge(MISSPELLED, {
    what: describeMisspelled(one),
    setting: one.nearest,
    remedy: `rename it to ${one.nearest}, if that is what you meant.`,
  });

/** A problem begins with its variable, or with the file. */
const refuse = (problem: string): Finding =>
  failure('settings', { what: problem, setting: /^([A-Z][A-Z0-9_]+)\b/.exec(problem)?.[1] });

/** Somebody who runs it elsewhere than the gateway meant one that runs. */
const mentionUrl = (finding: Finding): Finding => ({
  ...finding,
  ...(finding.what.startsWith(describeMissing('OIDC_ISSUER')) && {
    remedy:
      "run this in the folder that has the gateway's .env. To check a gateway that runs elsewhere, name it: postern doctor https://mcp.example.com",
  }),
});
