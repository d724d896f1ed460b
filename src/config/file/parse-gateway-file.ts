// §18.1: the text of the configuration file, read once, with everything that is wrong with it.

import { isSecretName, replaceSecrets } from '../../platform/secret-texts.ts';
import { quote } from '../../platform/text.ts';
import { checkServers } from './check-servers.ts';
import { hasVariable } from './expand.ts';
import type { GatewayFile } from './gateway-file.ts';
import { type FileContent, fileShape } from './members/file-members.ts';
import type { PlacedServer } from './members/servers-shape.ts';
import type { ParseOptions } from './parse-options.ts';
import { ADDRESS_MEMBERS, RECORD_MEMBERS } from './secret-members.ts';
import { isOtherName } from './server-name.ts';
import { isBareVariable } from './shapes/bare-variable.ts';
import type { ReadContext } from './shapes/shape.ts';
import type { FileNode, MemberNode } from './syntax/file-node.ts';
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

// §18.1: what looks like a secret in a server's entry, and stands there in the clear.

interface PlainSecret {
  readonly line: number;
  readonly path: string;
}

/** One line for all of the file, without any value; none where there is nothing to say. */
function describePlainSecrets(fileName: string, root: FileNode): readonly string[] {
  const secrets = listMembers(root, 'mcpServers').flatMap(findInServer);
  const [first] = secrets;
  if (first === undefined) return [];
  const more = secrets.length - MAX_SHOWN;
  const places = [
    ...secrets.slice(0, MAX_SHOWN).map(({ path }) => path),
    ...(more > 0 ? [`${more} more`] : []),
  ].join(', ');
  const said =
    secrets.length === 1
      ? `${places} looks like a secret, and whoever reads this file has it. Put it into .env (or the environment), and write a variable in its place: \${NAME}.`
      : `these look like secrets, and whoever reads this file has them: ${places}. Put them into .env (or the environment), and write a variable in place of each: \${NAME}.`;
  return [`${fileName}:${first.line}: ${said} postern init --servers ${fileName} does that.`];
}

const MAX_SHOWN = 5;

function findInServer({ name: server, value }: MemberNode): readonly PlainSecret[] {
  const path = `mcpServers.${server}`;
  return listMembers(value).flatMap(({ name, value: node }) => {
    const here = `${path}.${name}`;
    if (RECORD_MEMBERS.includes(name))
      return listMembers(node)
        .filter((member) => isPlainSecret(member.value, { name: member.name }))
        .map((member) => ({ line: member.line, path: `${here}.${member.name}` }));
    if (ADDRESS_MEMBERS.includes(name))
      return isPlainSecret(node) ? [{ line: node.line, path: here }] : [];
    if (name !== 'args' || node.kind !== 'list') return [];
    return node.items.flatMap((item, index) =>
      isPlainSecret(item, { before: toText(node.items[index - 1]) })
        ? [{ line: item.line, path: `${here}[${index}]` }]
        : [],
    );
  });
}

/** Of an object, or of the one that is its member `name`. */
function listMembers(node: FileNode, name?: string): readonly MemberNode[] {
  if (node.kind !== 'object') return [];
  if (name === undefined) return node.members;
  return node.members
    .filter((member) => member.name === name)
    .flatMap(({ value }) => listMembers(value));
}

interface Context {
  /** Of the variable or header. */
  readonly name?: string;
  /** The argument in front of it. */
  readonly before?: string;
}

function isPlainSecret(node: FileNode, { name, before }: Context = {}): boolean {
  const text = toText(node);
  if (text === '' || isBareVariable(text)) return false;
  if (name !== undefined && isSecretName(name)) return !hasVariable(text);
  let found = false;
  replaceSecrets(text, before, (secret) => {
    found = true;
    return secret;
  });
  return found;
}

const toText = (node: FileNode | undefined): string =>
  node?.kind === 'scalar' && node.value !== null ? String(node.value) : '';
