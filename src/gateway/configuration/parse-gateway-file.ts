// §18.1: the text of the configuration file, as a whole: what servers and rules say, and what they must not say together.

import { createFindStranger } from '../../catalog/idle-patterns.ts';
import { completeViews, describeMissingServers } from '../../catalog/views/view-shape.ts';
import { parseText, type TextSource } from '../../config/file/parse-text.ts';
import { report } from '../../config/file/shapes/shape.ts';
import type { Problem } from '../../config/problem.ts';
import { completeGuards, type PlacedGuard } from '../../control/guards/guard-config.ts';
import {
  completeRules,
  describeMissingViews,
  type PlacedRule,
} from '../../control/rules/rule-config.ts';
import { completeClients } from '../../logins/client-authentication/machine-client-shape.ts';
import { quote } from '../../platform/text.ts';
import type { FileSurroundings } from '../../servers/config/common-members.ts';
import { describePlainSecrets } from '../../servers/config/plain-secrets.ts';
import { completeServers, isOtherName, type PlacedServer } from '../../servers/config/servers.ts';
import { findFacts, type ServerEntry } from '../../servers/transport/transports.ts';
import { type FileContent, fileShape, type GatewayFile } from './gateway-file.ts';

export interface ParseOptions extends TextSource, FileSurroundings {}

/** With all that the transports read of their servers. */
export type ParsedFile = GatewayFile & { readonly servers: readonly ServerEntry[] };

export type ParsedGatewayFile =
  | {
      readonly kind: 'parsed';
      readonly file: ParsedFile;
      /** For the log: what works, but may not be what was meant. */
      readonly warnings: readonly string[];
    }
  /** In the order of the file. */
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

/** Reads nothing but the text, except what `options` reads. */
export async function parseGatewayFile(
  text: string,
  options: ParseOptions,
): Promise<ParsedGatewayFile> {
  const { fileName } = options;
  const parsed = parseText(text, options, fileShape);
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

async function completeFile(
  {
    servers,
    disabled,
    clients,
    views,
    rules: { rules, meansNoRules },
    allowsFewer,
    guards,
    ...content
  }: FileContent,
  options: ParseOptions,
): Promise<ParsedFile> {
  const { fileName } = options;
  const isServer = (name: string) => servers.some(({ config }) => config.name === name);
  const isView = (name: string) => views.some(({ view }) => view.name === name);
  reportStrangers({ ...content, servers, disabled, rules, guards }, options);
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
        guards: completeGuards(guards, servers.map(toGuardedServer), options),
      }),
  };
}

/**
 * Where only a server can have such a name, and none of the file has. What others allow stays so: it is patterns that protect
 * which must not fit nothing.
 */
function reportStrangers(
  { servers, disabled, rules, guards = [], ...naming }: Strangers,
  { config: { server } }: ParseOptions,
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
    // It protects again once its server is there: nobody has to take it out to disable that.
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

interface Strangers
  extends Pick<
    FileContent,
    'builtIn' | 'separator' | 'maxNameLength' | 'names' | 'servers' | 'disabled' | 'guards'
  > {
  readonly rules: readonly PlacedRule[];
}

/** What makes a server one for each user, which no guard can be. */
const toGuardedServer = ({ config }: PlacedServer) => ({
  name: config.name,
  personalBy: findFacts(config).personalBy,
});

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

/** Characters of a name that are shown. */
const MAX_NAME = 64;
