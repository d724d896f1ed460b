// All ways by which a client gets something of a server, and sends something to it.
import { CLIENT_MARK } from '../guards/speaking-server.ts';
import type { EraClient } from './era-clients.ts';

/** What a way is about; controls say what of these they hold. */
export type WayKind =
  | 'tools'
  | 'prompts'
  | 'completions of prompts'
  | 'resources'
  | 'lists of resources'
  | 'lists'
  | 'instructions';

export interface Way {
  readonly title: string;
  readonly kind: WayKind;
  /** `''` where it is about all of them. */
  readonly server: ServerName | '';
  readonly eras: readonly Era[];
  /** Whether it goes to a view that is searched. */
  readonly isSearched: boolean;
  /** Whether what the client was told says that it has passed, where no mark of the server would. */
  isAccepted?(told: string): boolean;
  /** Resolves to all that the client was told. */
  go(client: EraClient): Promise<string>;
}

export type Era = 'session' | 'stateless';
export type ServerName = 'own' | 'it' | 'local' | 'now';

const BOTH: readonly Era[] = ['session', 'stateless'];
/** Built in; over HTTP and on stdio in the session era; over HTTP in the stateless one. */
export const SERVERS: readonly ServerName[] = ['own', 'it', 'local', 'now'];
const SCHEMES: Readonly<Record<ServerName, string>> = {
  own: 'own',
  it: 'test',
  local: 'local',
  now: 'now',
};

/** Of a server: a result, an error result, one after progress and log, one after a question. */
const TOOLS = ['say', 'fail', 'tell', 'elicit'];
const MARKED = { said: CLIENT_MARK };
const _meta = { progressToken: 'p' };

const callWays = (server: ServerName): readonly Way[] =>
  TOOLS.flatMap((tool) => {
    const name = `${server}__${tool}`;
    const about = { kind: 'tools', server, eras: BOTH } as const;
    return [
      {
        ...about,
        title: `tools/call ${name}`,
        isSearched: false,
        go: ({ ask }) => ask('tools/call', { name, arguments: MARKED, _meta }),
      },
      {
        ...about,
        title: `call_tool ${name}`,
        isSearched: true,
        go: ({ ask }) =>
          ask('tools/call', { name: 'call_tool', arguments: { name, arguments: MARKED }, _meta }),
      },
      {
        ...about,
        title: `tools/call ${name} in a view that is searched`,
        isSearched: true,
        go: ({ ask }) => ask('tools/call', { name, arguments: MARKED, _meta }),
      },
    ] satisfies readonly Way[];
  });

const brokenWays: readonly Way[] = (['it', 'local'] as const).map((server) => ({
  title: `tools/call ${server}__broken, which ends with an error`,
  kind: 'tools',
  server,
  eras: BOTH,
  isSearched: false,
  go: ({ ask }) => ask('tools/call', { name: `${server}__broken`, arguments: MARKED }),
}));

const plainWay = (
  server: ServerName | '',
  kind: WayKind,
  method: string,
  params: object = {},
  eras = BOTH,
): Way => ({
  title: `${method} ${JSON.stringify(params)}`,
  kind,
  server,
  eras,
  isSearched: false,
  go: ({ ask }) => ask(method, { ...params }),
});

const promptWays = (server: ServerName): readonly Way[] => {
  const name = `${server}__prompt`;
  return [
    plainWay(server, 'prompts', 'prompts/get', { name, arguments: { a: CLIENT_MARK } }),
    ...(server === 'own'
      ? []
      : [
          plainWay(server, 'completions of prompts', 'completion/complete', {
            ref: { type: 'ref/prompt', name },
            argument: { name: 'a', value: CLIENT_MARK },
          }),
        ]),
  ];
};

const resourceWays = (server: ServerName): readonly Way[] => {
  const scheme = SCHEMES[server];
  const hasTemplates = server !== 'own';
  return [
    plainWay(server, 'resources', 'resources/read', { uri: `${scheme}://r` }),
    ...(hasTemplates
      ? [plainWay(server, 'resources', 'resources/read', { uri: `${scheme}://t/${CLIENT_MARK}` })]
      : []),
    ...(server === 'it' || server === 'local'
      ? [
          plainWay(server, 'resources', 'completion/complete', {
            ref: { type: 'ref/resource', uri: `${scheme}://t/{id}` },
            argument: { name: 'id', value: CLIENT_MARK },
          }),
          {
            ...plainWay(
              server,
              'resources',
              'resources/subscribe',
              { uri: `${scheme}://t/${CLIENT_MARK}` },
              ['session'],
            ),
            // The server may hear of it after the answer.
            isAccepted: (told: string) => JSON.parse(told).error === undefined,
          },
        ]
      : []),
  ];
};

const SEARCH: readonly Way[] = [
  {
    title: 'search_tools',
    kind: 'lists',
    server: '',
    eras: BOTH,
    isSearched: true,
    go: ({ ask }) =>
      ask('tools/call', {
        name: 'search_tools',
        arguments: { query: 'say fail tell elicit', limit: 20 },
      }),
  },
  {
    title: 'describe_tools',
    kind: 'lists',
    server: '',
    eras: BOTH,
    isSearched: true,
    go: ({ ask }) =>
      ask('tools/call', {
        name: 'describe_tools',
        arguments: { names: SERVERS.map((server) => `${server}__say`) },
      }),
  },
];

export const WAYS: readonly Way[] = [
  ...SERVERS.flatMap(callWays),
  ...brokenWays,
  ...SERVERS.flatMap(promptWays),
  ...SERVERS.flatMap(resourceWays),
  plainWay('', 'lists', 'tools/list'),
  plainWay('', 'lists', 'prompts/list'),
  plainWay('', 'lists of resources', 'resources/list'),
  plainWay('', 'lists of resources', 'resources/templates/list'),
  ...SEARCH,
  {
    title: 'instructions',
    kind: 'instructions',
    server: '',
    eras: BOTH,
    isSearched: false,
    go: async ({ greeting }) => greeting,
  },
];
