// §18.1: the text of the configuration file, as a whole: what servers and rules say, and what they must not say together.
import { parseText, type TextSource } from '../../config/file/parse-text.ts';
import type { Problem } from '../../config/problem.ts';
import { completeClients } from '../../oauth/client-authentication/machine-client-shape.ts';
import { quote } from '../../platform/text.ts';
import { completeGuards } from '../../policy/guards/complete-guards.ts';
import { completeRules } from '../../policy/rules/check-rules.ts';
import type { CompletionDeps } from '../../upstreams/config/common-members.ts';
import { describePlainSecrets } from '../../upstreams/config/plain-secrets.ts';
import { completeServers, isOtherName, type PlacedServer } from '../../upstreams/config/servers.ts';
import { dependsOnUser } from '../../upstreams/credentials/server-credentials.ts';
import { type FileContent, fileShape, type GatewayFile } from './gateway-file.ts';

export interface ParseOptions extends TextSource, CompletionDeps {}

export type ParsedGatewayFile =
  | {
      readonly kind: 'parsed';
      readonly file: GatewayFile;
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
          ...parsed.describeIgnored(),
          ...describePlainSecrets(fileName, root),
          ...parsed.warnings,
        ],
      };
}

const completeFile = async (
  { servers, clients, rules: { rules, meansNoRules }, guards, ...content }: FileContent,
  options: ParseOptions,
): Promise<GatewayFile> => ({
  ...content,
  rules: await completeRules(rules, options.fileName),
  servers: await completeServers(servers, content, options),
  ...(clients.length > 0 && {
    clients: completeClients(clients, options.fileName, (name) =>
      servers.some(({ config }) => config.name === name),
    ),
  }),
  meansNoRules,
  ...(guards.length > 0 && {
    guards: completeGuards(guards, {
      servers: servers.map(({ config }) => ({
        name: config.name,
        personalBy: !dependsOnUser(config)
          ? undefined
          : config.kind === 'http'
            ? ('auth' as const)
            : ('isolation' as const),
      })),
      ...options,
    }),
  }),
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
