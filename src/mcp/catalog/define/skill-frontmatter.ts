// SEP-2640, Agent Skills: what a SKILL.md says of itself, in YAML between two lines of three hyphens.
import type { FileNode, MemberNode } from '../../../config/file/syntax/file-node.ts';
import { readSyntax } from '../../../config/file/syntax/read-syntax.ts';
import { DefinitionError } from '../../../errors/gateway-error.ts';
import type { JsonObject } from '../../../platform/json.ts';
import { quote } from '../../../platform/text.ts';
import type { SkillFrontmatter } from '../descriptions.ts';

/** Agent Skills, "name": lower-case letters and digits in words with hyphens between them. */
const NAME = /^(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*$/;
const MAX_DESCRIPTION = 1_024;
/** Kept for extensions of MCP, which have defined none (SEP-2640). */
const RESERVED = 'io.modelcontextprotocol/';

const HEAD = /^\uFEFF?---[ \t]*\r?\n/;
const TAIL = /^---[ \t]*(\r?\n|$)/m;

/**
 * @param path Of the file, for messages.
 * @param folder The name of the folder that it lies in.
 * @throws DefinitionError with file and line.
 */
export function readFrontmatter(text: string, path: string, folder: string): SkillFrontmatter {
  const failAt = (at: number, problem: string): never => {
    throw new DefinitionError(`${path}:${at}: ${problem}`);
  };
  const members = readMembers(cutFrontmatter(text, failAt), failAt);
  const findMember = (wanted: string) => members.find((member) => member.name === wanted);

  function readText(wanted: string, max: number, allowed: string): string {
    const member = findMember(wanted);
    if (member === undefined) return failAt(1, `${wanted} is missing: it must be ${allowed}.`);
    const value = member.value.kind === 'scalar' ? member.value.value : undefined;
    return typeof value === 'string' && value.trim() !== '' && [...value].length <= max
      ? value
      : failAt(member.line, `${wanted} must be ${allowed}.`);
  }

  const name = readText('name', 64, NAME_ALLOWED);
  const line = findMember('name')?.line ?? 1;
  if (!NAME.test(name)) failAt(line, `name is ${quote(name, 100)}; it must be ${NAME_ALLOWED}.`);
  if (name !== folder) {
    failAt(
      line,
      `name is ${quote(name)}, and the folder is called ${quote(folder, 100)}. Both must be the same.`,
    );
  }
  const description = readText(
    'description',
    MAX_DESCRIPTION,
    `a text of 1 to ${MAX_DESCRIPTION} characters that says what the skill does and when to use it`,
  );
  checkMetadata(findMember('metadata'), failAt);
  return { ...toJson(members, failAt), name, description };
}

const NAME_ALLOWED = '1 to 64 lower-case letters and digits, in words with one hyphen between them';

type FailAt = (line: number, problem: string) => never;

function cutFrontmatter(text: string, failAt: FailAt): string {
  const head = HEAD.exec(text)?.[0];
  if (head === undefined) {
    return failAt(
      1,
      'a SKILL.md begins with a line ---, then name and description in YAML, then a line ---.',
    );
  }
  const body = text.slice(head.length);
  const end = TAIL.exec(body);
  return end === null
    ? failAt(1, 'the YAML that begins here has no line --- at its end.')
    : body.slice(0, end.index);
}

/** The first line of the file is that of the hyphens. */
const LINES_BEFORE = 1;

function readMembers(yaml: string, failAt: FailAt): readonly MemberNode[] {
  const read = readSyntax(yaml, 'yaml');
  if (read.kind === 'broken') return failAt(read.line + LINES_BEFORE, read.message);
  const { root } = read;
  return root.kind === 'object'
    ? root.members.map(moveDown)
    : failAt(1 + LINES_BEFORE, 'names and their values are expected here, such as name: refunds.');
}

const moveDown = (member: MemberNode): MemberNode => ({
  ...member,
  line: member.line + LINES_BEFORE,
});

function checkMetadata(metadata: MemberNode | undefined, failAt: FailAt): void {
  if (metadata?.value.kind !== 'object') return;
  const reserved = metadata.value.members.find(({ name }) => name.startsWith(RESERVED));
  if (reserved !== undefined) {
    failAt(
      reserved.line + LINES_BEFORE,
      `metadata must have no names that begin with ${RESERVED}: they belong to MCP.`,
    );
  }
}

function toJson(members: readonly MemberNode[], failAt: FailAt): JsonObject {
  const seen = new Set<string>();
  return Object.fromEntries(
    members.map(({ name, line, value }) => {
      if (seen.has(name)) failAt(line, `${quote(name, 100)} is there twice.`);
      seen.add(name);
      return [name, toValue(value, failAt)];
    }),
  );
}

function toValue(node: FileNode, failAt: FailAt): unknown {
  if (node.kind === 'list') return node.items.map((item) => toValue(item, failAt));
  if (node.kind === 'object') return toJson(node.members.map(moveDown), failAt);
  // YAML has numbers that JSON has not.
  return typeof node.value !== 'number' || Number.isFinite(node.value)
    ? node.value
    : failAt(node.line + LINES_BEFORE, 'JSON has no such number. Put it in quotes.');
}
