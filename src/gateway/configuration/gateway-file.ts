// §18.1: the configuration file: which MCP servers are behind the gateway, and who may use what.

import { createFindStranger } from '../../catalog/idle-patterns.ts';
import {
  completeViews,
  describeMissingServers,
  type ViewsConfig,
  viewsShape,
} from '../../catalog/view-shape.ts';
import {
  choice,
  freeText,
  patternText,
  trueOrFalse,
  wholeNumber,
} from '../../config/file/shapes/scalar.ts';
import {
  defineMember,
  object,
  parseText,
  report,
  type TextSource,
} from '../../config/file/shapes/shape.ts';
import type { Problem } from '../../config/problem.ts';
import {
  completeGuards,
  guardsShape,
  type PlacedGuard,
} from '../../control/guards/guard-config.ts';
import {
  completeRules,
  describeMissingViews,
  type PlacedRule,
  rulesShape,
} from '../../control/rules/rule-config.ts';
import type { RulesConfig } from '../../control/rules/rules.ts';
import type { MachineClientsConfig } from '../../logins/auth/machine-clients.ts';
import {
  clientsShape,
  completeClients,
} from '../../logins/client-authentication/machine-client-shape.ts';
import type { GuardsConfig } from '../../mcp/calls/guards.ts';
import type { Lock } from '../../mcp/catalog/approved-items.ts';
import type { ServersConfig } from '../../mcp/upstream/upstream-config.ts';
import type { JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { FileSurroundings } from '../../servers/config/common-members.ts';
import { describePlainSecrets } from '../../servers/config/plain-secrets.ts';
import {
  completeServers,
  isOtherName,
  type PlacedServer,
  SERVER_DEFINITION,
  serverShape,
  serversShape,
} from '../../servers/config/servers.ts';
import { findFacts, type ServerEntry } from '../../servers/transport/transports.ts';
import type { NotifyConfig } from '../../telemetry/notify/notify.ts';
import { notifyShape } from '../../telemetry/notify/notify-config.ts';

/** The parsed content of the file. */
export interface GatewayFile
  extends ServersConfig,
    RulesConfig,
    GuardsConfig,
    MachineClientsConfig,
    ViewsConfig {
  readonly notify?: NotifyConfig | undefined;
}

/** The configuration file and the lock next to it. They are read together, and stay in effect until they are reloaded. */
export interface Setup {
  readonly file: GatewayFile;
  /** Undefined if there is no lock: everything is then approved. */
  readonly lock?: Lock | undefined;
  /** Set if the lock file is empty (`{}`): there is intentionally no lock. */
  readonly meansNoLock?: boolean;
}

const DEFAULT_SEPARATOR = '__';
const DEFAULT_NAME_LENGTH = 64;

const SEPARATOR_PATTERN = '^[_.-]{1,8}$';

const fileMembers = {
  $schema: defineMember(
    '$schema',
    freeText(),
    'The address of the JSON Schema of this file, for editors.',
  ),
  mcpServers: defineMember(
    'mcpServers',
    serversShape,
    'The MCP servers behind the gateway, by name. Their order determines precedence if names collide.',
  ),
  servers: defineMember(
    'servers',
    serversShape,
    'The same as mcpServers, under the name that VS Code uses.',
  ),
  builtIn: defineMember(
    'builtIn',
    trueOrFalse,
    'false takes the built-in tools, prompts and resources away.',
  ),
  separator: defineMember(
    'separator',
    patternText(SEPARATOR_PATTERN, '1 to 8 of the characters _ - and .'),
    'The text between a server’s prefix and the server’s own name for an item. Default: __.',
  ),
  maxNameLength: defineMember(
    'maxNameLength',
    // With a shorter limit, only the server's name and the hash would fit; no tool has a longer name (§18.2).
    wholeNumber(32, 128),
    'The maximum length of the names of tools and prompts, in characters; longer ones are cut. Default: 64; 48 suits clients that add their own prefix.',
  ),
  names: defineMember(
    'names',
    choice('own', 'strict'),
    'strict: names of tools and prompts have letters, digits, _ and - alone. own, the default, leaves them as the servers write them.',
  ),
  clients: defineMember(
    'clients',
    clientsShape,
    'Clients that log in as themselves, without a person: CI jobs, agents, scripts. Each gets gateway tokens by its secret or key.',
  ),
  views: defineMember(
    'views',
    viewsShape,
    'Curated sets of the servers’ tools, prompts and resources, by name: each is served at /mcp/<name>, like a server.',
  ),
  rules: defineMember(
    'rules',
    rulesShape,
    'The rules of who may use what. Once there is a rule, everything that no rule allows is hidden. "everyone" instead of the list lets everybody use everything.',
  ),
  allowFewerProtections: defineMember(
    'allowFewerProtections',
    trueOrFalse,
    'true lets a running gateway load this file though it protects less than the one before: an ask, a limit of a rule or a guard is gone.',
  ),
  guards: defineMember(
    'guards',
    guardsShape,
    'The guards that check messages, in this order, and pass, change or refuse them.',
  ),
  notify: defineMember(
    'notify',
    notifyShape,
    'A webhook that tells operators of calls that wait for them, servers that are down, descriptions that changed, and refused logins.',
  ),
};

// Members that other programs write into a file that Postern shares with them.

/** Ignored members at the top level, in addition to those of servers. */
const IGNORED_FILE_MEMBERS: readonly string[] = [
  '//',
  '_comment',
  'comment',
  'globalShortcut',
  'inputs',
  'isDxtAutoUpdatesEnabled',
  'isUsingBuiltInNodeForMcp',
  'preferences',
  'sandbox',
];

/** Members in which other programs list their servers. */
const REPLACED_FILE_MEMBERS: Readonly<Record<string, string>> = {
  context_servers: 'Postern has its servers under "mcpServers". Rename this member.',
  mcp: 'Postern has its servers under "mcpServers", at the top of the file. Move them there.',
  mcp_servers: 'Postern has its servers under "mcpServers". Rename this member.',
};

/** The content of the file, before references between servers and rules are checked. */
type FileContent = NonNullable<ReturnType<typeof fileShape.read>>;

export const fileShape = object({
  allowed: 'an object with mcpServers',
  members: Object.values(fileMembers),
  ignored: IGNORED_FILE_MEMBERS,
  replaced: REPLACED_FILE_MEMBERS,
  schema: { definitions: { [SERVER_DEFINITION]: serverShape.schema } },
  build({ read, report: reportAt }) {
    read(fileMembers.$schema);
    const servers = [...(read(fileMembers.mcpServers) ?? []), ...(read(fileMembers.servers) ?? [])];
    const builtIn = read(fileMembers.builtIn) ?? true;
    const separator = read(fileMembers.separator) ?? DEFAULT_SEPARATOR;
    const names = read(fileMembers.names) ?? 'own';
    if (names === 'strict' && separator.includes('.'))
      reportAt(
        'With "names": "strict" the separator has no dot. Use _ or -.',
        fileMembers.separator,
      );
    const maxNameLength = read(fileMembers.maxNameLength) ?? DEFAULT_NAME_LENGTH;
    return {
      builtIn,
      separator,
      maxNameLength,
      names,
      servers: servers.filter((server) => 'config' in server),
      disabled: servers.filter((server) => 'disabledPrefix' in server),
      clients: read(fileMembers.clients) ?? [],
      views: read(fileMembers.views) ?? [],
      ...(read(fileMembers.rules) ?? { rules: [], meansNoRules: false }),
      allowsFewer: read(fileMembers.allowFewerProtections) ?? false,
      /** Undefined if the file has no guards. */
      guards: read(fileMembers.guards),
      notify: read(fileMembers.notify),
    };
  },
});

/** The JSON Schema (draft 7) that editors use to complete and check the configuration file. */
export const createGatewayFileSchema = (): JsonObject => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Configuration file of Postern',
  ...fileShape.schema,
});

// §18.1: reads the configuration file as a whole: servers and rules, and combinations of them that are not allowed.

export interface FileSource extends TextSource, FileSurroundings {}

/** Includes everything that the transports read about their servers. */
export type ParsedFile = GatewayFile & { readonly servers: readonly ServerEntry[] };

export type ParsedGatewayFile =
  | {
      readonly kind: 'parsed';
      readonly file: ParsedFile;
      /** For the log: choices that are valid but possibly unintended. */
      readonly warnings: readonly string[];
    }
  /** In the order of the file. */
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

/** Reads only the text, apart from anything that `options` reads. */
export async function parseGatewayFile(
  fileText: string,
  options: FileSource,
): Promise<ParsedGatewayFile> {
  const { fileName } = options;
  const parsed = parseText(fileText, options, fileShape);
  if (parsed.kind === 'broken') return { kind: 'problems', problems: [parsed.problem] };
  const { root, content } = parsed;
  const file = content && (await completeFile(content, options));
  const problems = parsed.listProblems();
  return file === undefined || problems.length > 0
    ? { kind: 'problems', problems }
    : {
        kind: 'parsed',
        file,
        warnings: [
          ...describeOtherNames(fileName, content?.servers ?? []),
          ...describeMissingServers(
            file.views ?? [],
            file.servers.map(({ name }) => name),
          ),
          ...describeMissingViews(
            file.rules,
            (file.views ?? []).map(({ name }) => name),
          ),
          ...parsed.describeIgnored(),
          ...describePlainSecrets(fileName, root),
          ...parsed.warnings,
        ],
      };
}

async function completeFile(file: FileContent, options: FileSource): Promise<ParsedFile> {
  const {
    servers,
    disabled,
    clients,
    views,
    rules,
    meansNoRules,
    allowsFewer,
    guards,
    ...content
  } = file;
  const { fileName } = options;
  const isServer = (name: string) => servers.some(({ config }) => config.name === name);
  const isView = (name: string) => views.some(({ view }) => view.name === name);
  reportStrangers(file, options);
  return {
    ...content,
    rules: await completeRules(rules, fileName),
    servers: await completeServers(servers, content, options),
    ...(views.length > 0 && { views: completeViews(views, fileName, isServer) }),
    ...(clients.length > 0 && {
      clients: completeClients(clients, fileName, (name) => isServer(name) || isView(name)),
    }),
    meansNoRules,
    ...(allowsFewer && { allowsFewer }),
    ...(guards?.length === 0 && { meansNoGuards: true }),
    ...(guards !== undefined &&
      guards.length > 0 && {
        guards: completeGuards(
          guards,
          // The member that makes a server personal to each user, which a guard server must not be.
          servers.map(({ config }) => ({
            name: config.name,
            personalBy: findFacts(config).personalBy,
          })),
          options,
        ),
      }),
  };
}

/**
 * Reports patterns for names that only a server can have, if no server in the file has them. Patterns of rules that only allow are
 * not reported: it is a problem only if a pattern that protects something matches nothing.
 */
function reportStrangers(
  { servers, disabled, rules, guards = [], ...naming }: FileContent,
  { config: { server } }: FileSource,
): void {
  const configs = servers.map(({ config }) => config);
  const maybeOwn =
    naming.builtIn && (server.catalogFile !== undefined || naming.separator.length === 1);
  if (configs.length === 0 || maybeOwn || configs.some(({ prefix }) => prefix === '')) return;
  const findStranger = createFindStranger({ ...naming, servers: configs });
  const reportAt = ({ place, line }: PlacedRule | PlacedGuard, member: string, pattern: string) => {
    const stranger = findStranger(pattern);
    if (stranger === undefined) return;
    const { start, meant } = stranger;
    // The pattern protects again once its server is back, so it does not have to be removed while the server is disabled.
    if (disabled.some((one) => one.disabledPrefix + naming.separator === start)) return;
    const guess = meant === undefined ? '' : ` Did you mean ${quote(meant, MAX_NAME)}?`;
    report(
      place,
      line,
      `${member}: ${quote(pattern, MAX_NAME)} fits nothing, since no server of this file has names that begin with ${quote(start, MAX_NAME)}.${guess}`,
    );
  };
  for (const placed of rules)
    if (placed.rule.ask !== undefined)
      for (const pattern of placed.rule.may) reportAt(placed, 'may', pattern);
  for (const placed of guards)
    for (const pattern of placed.config.tools ?? []) reportAt(placed, 'tools', pattern);
}

function describeOtherNames(fileName: string, servers: readonly PlacedServer[]): readonly string[] {
  const names = servers
    .filter(({ givenName, config }) => isOtherName(givenName, config.name))
    .map(({ givenName, config }) => `${quote(givenName, MAX_NAME)} is ${config.name}`);
  return names.length === 0
    ? []
    : [
        `${fileName}: these servers have other names here, because a name has only letters, digits and hyphens: ${names.join(', ')}.`,
      ];
}

/** Maximum length of a displayed name, in characters. */
const MAX_NAME = 64;
