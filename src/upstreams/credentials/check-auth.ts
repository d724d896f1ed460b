// §18.6: what `auth` of the servers needs of the gateway's settings, checked at start. What REDIS_URL needs is checked
// where the file is read.
import type { Config } from '../../config/config.ts';
import type { UpstreamAuth, UpstreamConfig } from '../../config/file/gateway-file.ts';

type Settings = Pick<Config, 'auth' | 'oauth'>;

interface Requirement {
  readonly types: readonly UpstreamAuth['type'][];
  readonly isMet: (settings: Settings) => boolean;
  /** After "`auth` <type>". */
  readonly problem: string;
}

const REQUIREMENTS: readonly Requirement[] = [
  {
    types: ['token-exchange', 'forward'],
    isMet: ({ auth }) => auth.required,
    problem: 'needs the token of a caller, and with AUTH_REQUIRED=false callers have none.',
  },
  {
    types: ['token-exchange'],
    isMet: ({ oauth }) => oauth.providerClient.id !== undefined,
    problem:
      'needs OAUTH_CLIENT_ID, and with most providers OAUTH_CLIENT_SECRET: the client by which the gateway asks the provider for tokens.',
  },
];

/** One sentence for each problem; none where all is well. */
export const findAuthProblems = (
  servers: readonly UpstreamConfig[],
  settings: Settings,
): readonly string[] =>
  servers.flatMap((server) => {
    if (server.kind !== 'http') return [];
    const { type } = server.auth;
    return REQUIREMENTS.filter(({ types, isMet }) => types.includes(type) && !isMet(settings)).map(
      ({ problem }) => `Server ${server.name}: auth ${type} ${problem}`,
    );
  });
