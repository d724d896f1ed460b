// §18.1: the text of the configuration file, read once, with everything that is wrong with it.
import { quote } from '../quote.ts';
import { checkServers } from './check-servers.ts';
import type { GatewayFile } from './gateway-file.ts';
import { type FileContent, fileShape } from './members/file-members.ts';
import type { PlacedServer } from './members/servers-shape.ts';
import type { ParseOptions } from './parse-options.ts';
import { describePlainSecrets } from './plain-secrets.ts';
import { isOtherName } from './server-name.ts';
import type { ReadContext } from './shapes/shape.ts';
import { readSyntax } from './syntax/read-syntax.ts';

export type ParsedGatewayFile =
  | {
      readonly kind: 'parsed';
      readonly file: GatewayFile;
      /** For the log: what works, but may not be what was meant. */
      readonly warnings: readonly string[];
    }
  /** `mcp.json:12: mcpServers.github.url: …`, one line each, in the order of the file. */
  | { readonly kind: 'problems'; readonly problems: readonly string[] };

/** Reads nothing but the text, except what `options` reads. */
export async function parseGatewayFile(
  text: string,
  options: ParseOptions,
): Promise<ParsedGatewayFile> {
  const { fileName, env } = options;
  const syntax = readSyntax(text, options.format);
  if (syntax.kind === 'broken')
    return { kind: 'problems', problems: [`${fileName}:${syntax.line}: ${syntax.message}`] };

  const problems: { readonly line: number; readonly text: string }[] = [];
  const warnings: string[] = [];
  const ignored = new Set<string>();
  const context: ReadContext = {
    env,
    report(line, path, message) {
      const place = path === '' ? '' : `${path}: `;
      problems.push({ line, text: `${fileName}:${line}: ${place}${message}` });
    },
    warn: (line, path, message) => void warnings.push(`${fileName}:${line}: ${path}: ${message}`),
    reportIgnored: (name) => void ignored.add(name),
  };
  const content = fileShape.read(syntax.root, { path: '', context });
  const file = content && (await completeFile(content, context, options));
  return file === undefined || problems.length > 0
    ? {
        kind: 'problems',
        problems: problems.sort((a, b) => a.line - b.line).map((problem) => problem.text),
      }
    : {
        kind: 'parsed',
        file,
        warnings: [
          ...describeOtherNames(fileName, content?.servers ?? []),
          ...describeIgnored(fileName, ignored),
          ...describePlainSecrets(fileName, syntax.root),
          ...warnings,
        ],
      };
}

async function completeFile(
  { servers, rules, ...content }: FileContent,
  context: ReadContext,
  options: ParseOptions,
): Promise<GatewayFile> {
  const placedRules = rules.map(({ rule, path, line }) => ({
    ...rule,
    place: `${options.fileName}:${line}, ${path}`,
  }));
  const problems = (await options.checkRules?.(placedRules)) ?? [];
  rules.forEach(({ path, line }, index) => {
    const own = problems.filter(({ place }) => place === placedRules[index]?.place);
    for (const { message } of own) context.report(line, path, message);
  });
  return {
    ...content,
    servers: await checkServers(servers, content, options),
    rules: placedRules,
  };
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

/** Characters of a name that are shown. */
const MAX_NAME = 64;

function describeIgnored(fileName: string, ignored: ReadonlySet<string>): readonly string[] {
  const names = [...ignored].sort().join(', ');
  return names === ''
    ? []
    : [`${fileName}: these members of other programs mean nothing here and are ignored: ${names}.`];
}
