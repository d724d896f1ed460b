// §18.1: finds plain-text values in a server's entry that look like secrets.
import { hasVariable } from '../../config/file/expand.ts';
import { isBareVariable } from '../../config/file/shapes/scalar.ts';
import type { FileNode, MemberNode } from '../../config/file/syntax/read-syntax.ts';
import { isSecretName, replaceSecrets } from '../../platform/secret-texts.ts';
import { CREDENTIAL_TYPES } from '../credentials/credentials.ts';
import { TRANSPORTS } from '../transport/transports.ts';

/** Members of a server's entry with arbitrary names, whose values are secrets if their names suggest it. */
export const RECORD_MEMBERS: readonly string[] = ['env', 'headers'];

/** Addresses that may contain a secret. */
export const ADDRESS_MEMBERS: readonly string[] = TRANSPORTS.flatMap(({ addresses }) =>
  addresses.filter(({ shape }) => shape.isSecret).map(({ name }) => name),
);

export const AUTH_MEMBER = 'auth';

const SECRET_AUTH_MEMBERS: ReadonlySet<string> = new Set(
  CREDENTIAL_TYPES.flatMap(({ members }) =>
    members.filter(({ shape }) => shape.isSecret).map(({ name }) => name),
  ),
);

/** Judged by the name. In a record with arbitrary names, most names that sound like secrets are not. */
export const isSecretOfAuth = (name: string): boolean =>
  SECRET_AUTH_MEMBERS.has(name) || (/secret|password/i.test(name) && isSecretName(name));

export const isInTheClear = (text: string): boolean =>
  text !== '' && !isBareVariable(text) && !hasVariable(text);

interface PlainSecret {
  readonly line: number;
  readonly path: string;
}

/** One line for the whole file, without values; empty if there is nothing to report. */
export function describePlainSecrets(fileName: string, root: FileNode): readonly string[] {
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
      ? `${places} looks like a secret, and anyone who can read this file has it. Put it into .env (or the environment), and write a variable instead: \${NAME}.`
      : `these look like secrets, and anyone who can read this file has them: ${places}. Put them into .env (or the environment), and write a variable instead of each: \${NAME}.`;
  return [`${fileName}:${first.line}: ${said} postern init --servers ${fileName} does that.`];
}

const MAX_SHOWN = 5;

function findInServer({ name: server, value }: MemberNode): readonly PlainSecret[] {
  const path = `mcpServers.${server}`;
  return listMembers(value).flatMap(({ name, value: node }) => {
    const here = `${path}.${name}`;
    if (RECORD_MEMBERS.includes(name))
      return listMembers(node)
        .filter((member) => isPlainSecret(member.value, member.name))
        .map((member) => ({ line: member.line, path: `${here}.${member.name}` }));
    if (ADDRESS_MEMBERS.includes(name))
      return isPlainSecret(node) ? [{ line: node.line, path: here }] : [];
    if (name === AUTH_MEMBER) return findInAuth(node, here);
    if (name !== 'args' || node.kind !== 'list') return [];
    return node.items.flatMap((item, index) =>
      isPlainSecret(item, undefined, toText(node.items[index - 1]))
        ? [{ line: item.line, path: `${here}[${index}]` }]
        : [],
    );
  });
}

/** The members of `auth`, and those of its records. */
const findInAuth = (auth: FileNode, path: string): readonly PlainSecret[] =>
  listMembers(auth).flatMap(({ name, line, value }) =>
    value.kind === 'object'
      ? findInAuth(value, `${path}.${name}`)
      : isSecretOfAuth(name) && isInTheClear(toText(value))
        ? [{ line, path: `${path}.${name}` }]
        : [],
  );

/** The members of an object, or of its member `name`. */
function listMembers(node: FileNode, name?: string): readonly MemberNode[] {
  if (node.kind !== 'object') return [];
  if (name === undefined) return node.members;
  return node.members
    .filter((member) => member.name === name)
    .flatMap(({ value }) => listMembers(value));
}

/** `name` is the name of the variable or header, `before` the preceding argument. */
function isPlainSecret(node: FileNode, name?: string, before?: string) {
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

const toText = (node: FileNode | undefined) =>
  node?.kind === 'scalar' && node.value !== null ? String(node.value) : '';
