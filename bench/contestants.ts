// Who is measured. Each is a process of its own, so that none profits from what another warmed up.
export type Era = 'session' | 'stateless';

export interface Contestant {
  /** As `--only` takes it. */
  readonly name: string;
  /** As the tables show it. */
  readonly label: string;
  readonly era: Era;
  readonly command: Command;
  /** Whether `--quick` measures it. */
  readonly isQuick: boolean;
  /** Its packages are in `bench/contestants/node_modules`. */
  readonly needsInstall?: true;
}

/** What a contestant is told when it starts. */
export interface Surroundings {
  readonly port: number;
  readonly redisUrl: string;
  readonly issuer: string;
  readonly audience: string;
  /** An empty folder of its own. */
  readonly dataDir: string;
  /** What Postern answers, for those that only repeat it. */
  readonly answerFile: string;
}

/** Arguments of the program, which is node unless given, and the environment. */
export type Command = (surroundings: Surroundings) => {
  readonly program?: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly ownCpuOnly?: boolean;
};

export const runContestant =
  (file: string, env: Readonly<Record<string, string>> = {}): Command =>
  ({ port, redisUrl, issuer, audience, answerFile }) => ({
    args: [`bench/contestants/${file}`],
    env: {
      PORT: String(port),
      REDIS_URL: redisUrl,
      ISSUER: issuer,
      AUDIENCE: audience,
      ANSWER_FILE: answerFile,
      ...env,
    },
  });

/** The built service, as `postern start` runs it in production. */
export const runPostern =
  (
    store: 'redis' | 'embedded',
    settings: Readonly<Record<string, string>> = {},
    args: readonly string[] = [],
  ): Command =>
  ({ port, redisUrl, issuer, audience, dataDir }) => ({
    args: ['dist/cli/main.js', 'start', ...args],
    env: {
      PORT: String(port),
      HOST: '127.0.0.1',
      NODE_ENV: 'production',
      BASE_URL: `http://127.0.0.1:${port}`,
      DATA_DIR: dataDir,
      OIDC_ISSUER: issuer,
      OIDC_AUDIENCE: audience,
      // The real windows; only the maximum is out of the way.
      MCP_RATE_LIMIT_MAX: '1000000000',
      MCP_GLOBAL_RATE_LIMIT_MAX: '1000000000',
      LOG_LEVEL: 'warn',
      TRUST_PROXY: 'none',
      ...(store === 'redis' && { REDIS_URL: redisUrl }),
      ...settings,
    },
  });

const STORES = [
  { store: 'redis', storeName: 'Redis' },
  { store: 'embedded', storeName: 'embedded' },
] as const;

const VERIFIED = { TOKEN_SIGNATURE_MEMORY: '0' };

export const CONTESTANTS: readonly Contestant[] = [
  {
    name: 'bare',
    label: 'bare `node:http`',
    era: 'session',
    command: runContestant('bare.mjs'),
    isQuick: true,
  },
  {
    name: 'floor',
    label: 'floor',
    era: 'session',
    command: runContestant('floor.mjs'),
    isQuick: true,
  },
  {
    name: 'floor-remembering',
    label: 'floor, signatures remembered',
    era: 'session',
    command: runContestant('floor.mjs', { REMEMBER: 'true' }),
    isQuick: true,
  },
  {
    name: 'sdk',
    label: 'official SDK 2.4.0, jose',
    era: 'session',
    command: runContestant('sdk.mjs'),
    isQuick: false,
    needsInstall: true,
  },
  {
    name: 'fastmcp',
    label: 'fastmcp, jose',
    era: 'session',
    command: runContestant('fastmcp.mjs'),
    isQuick: false,
    needsInstall: true,
  },
  ...STORES.flatMap(({ store, storeName }) =>
    (['session', 'stateless'] as const).flatMap((era) => [
      {
        name: `${store}-${era}-verified`,
        label: `Postern, ${storeName}, ${era}`,
        era,
        command: runPostern(store, VERIFIED),
        isQuick: store === 'redis' || era === 'session',
      },
      {
        name: `${store}-${era}-remembered`,
        label: `Postern, ${storeName}, ${era}, signatures remembered`,
        era,
        command: runPostern(store),
        isQuick: store === 'redis' || era === 'session',
      },
    ]),
  ),
];

/** Those whose name is one of `names`, or begins with it and a hyphen. All of them for no names. */
export function selectContestants(names: readonly string[]): readonly Contestant[] {
  const unknown = names.filter((name) => !CONTESTANTS.some((one) => isNamed(one, name)));
  if (unknown.length > 0) {
    const known = CONTESTANTS.map(({ name }) => name).join(', ');
    throw new Error(`No contestant is called ${unknown.join(', ')}. There are: ${known}.`);
  }
  if (names.length === 0) return CONTESTANTS;
  return CONTESTANTS.filter((one) => names.some((name) => isNamed(one, name)));
}

const isNamed = (contestant: Contestant, name: string) =>
  contestant.name === name || contestant.name.startsWith(`${name}-`);
