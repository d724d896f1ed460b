// A Config that was made by hand, perhaps without types: what is missing must not let anybody in.
import type { Config } from './config.ts';
import { ConfigError } from './config-error.ts';

interface Requirement {
  readonly isMet: (config: Config) => boolean;
  readonly problem: string;
}

const GROUPS = ['server', 'http', 'store', 'mcp', 'auth', 'oauth', 'limits', 'outbound'] as const;

const REQUIREMENTS: readonly Requirement[] = [
  {
    isMet: ({ auth }) => typeof auth.required === 'boolean',
    problem: 'auth.required must be true or false.',
  },
  {
    isMet: ({ auth }) => !auth.required || isText(auth.provider?.issuer),
    problem: 'auth.provider.issuer is missing: with auth.required nobody can be let in without it.',
  },
  {
    isMet: ({ auth, oauth }) => !auth.required || auth.provider?.issuer === oauth.provider?.issuer,
    problem: 'auth.provider and oauth.provider must be the same provider.',
  },
  {
    isMet: ({ oauth }) => oauth.mode === 'broker' || oauth.mode === 'proxy',
    problem: 'oauth.mode must be broker or proxy.',
  },
  {
    isMet: ({ oauth }) => oauth.consent?.kind === 'page' || oauth.consent?.kind === 'off',
    problem: 'oauth.consent.kind must be page or off.',
  },
  {
    isMet: ({ oauth }) => oauth.mode !== 'broker' || isText(oauth.provider?.issuer),
    problem: 'oauth.provider.issuer is missing: broker mode needs it.',
  },
  {
    isMet: ({ oauth }) => oauth.mode !== 'broker' || isText(oauth.providerClient?.id),
    problem: 'oauth.providerClient.id is missing: broker mode needs it.',
  },
  {
    isMet: ({ oauth }) =>
      (oauth.mode !== 'broker' && oauth.consent?.kind !== 'page') || hasSecret(oauth),
    problem: 'oauth.stateSecret is missing: broker mode and the consent page need it.',
  },
];

/** @throws ConfigError with every problem at once. */
export function checkConfig(config: Config): void {
  const missing = GROUPS.filter((group) => typeof config[group] !== 'object');
  const problems =
    missing.length > 0
      ? [`The configuration lacks ${missing.join(', ')}; loadConfig makes a whole one.`]
      : REQUIREMENTS.filter(({ isMet }) => !isMet(config)).map(({ problem }) => problem);
  if (problems.length > 0) throw new ConfigError(problems);
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

function hasSecret({ stateSecret }: Config['oauth']): boolean {
  return stateSecret?.kind === 'given'
    ? stateSecret.secrets.length > 0
    : isText(stateSecret?.dataDir);
}
