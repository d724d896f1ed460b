// SEP-2640: defines skills, each of which is a folder with a SKILL.md.

import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, extname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type FileNode,
  type MemberNode,
  readSyntax,
} from '../../../config/file/syntax/read-syntax.ts';
import { DefinitionError } from '../../../errors/gateway-error.ts';
import { getErrorCode } from '../../../platform/error-code.ts';
import type { JsonObject } from '../../../platform/json.ts';
import { quote } from '../../../platform/text.ts';
import type {
  CacheHint,
  ResourceContent,
  SkillDescription,
  SkillFile,
  SkillFrontmatter,
} from '../content.ts';
import { checkMembers } from './describe-errors.ts';
import type { Resource } from './resource.ts';

/** Created by {@link defineSkill}. */
export interface Skill {
  readonly description: SkillDescription & { readonly resources: readonly SkillFile[] };
  /** All of its files, in the order of `description.resources`. */
  readonly files: readonly Resource[];
}

/** The argument of {@link defineSkill}. */
export interface SkillDefinition {
  /** The folder with the `SKILL.md`; a relative path starts at the working directory. */
  readonly folder: string | URL;
  /** The part of the URI before the name: with `acme/billing` it is `skill://acme/billing/refunds/SKILL.md`. */
  readonly prefix?: string;
}

/**
 * Defines a skill (SEP-2640, Agent Skills): a folder with a `SKILL.md`, named like the folder, and the files that it refers to.
 * Everything is read once, now: lists, digests and content always describe the same files. Names that begin with a dot are
 * ignored.
 *
 * @throws DefinitionError immediately, with file and line, if the folder is not a valid skill: no `SKILL.md`, an invalid name or
 * description, more than 512 files or 16 MiB, links.
 */
export function defineSkill(skill: SkillDefinition): Skill {
  checkMembers('Skill', skill, MEMBERS);
  const folder = resolveFolder(skill.folder);
  const prefix = readPrefix(skill.prefix);
  const name = basename(folder);
  const root = `skill://${[...prefix, name].join('/')}`;
  const files = readSkillFiles(folder).map((file) => ({
    ...file,
    uri: [root, ...file.segments.map(encodeURIComponent)].join('/'),
  }));
  const path = join(folder, MANIFEST);
  const manifest = files.find(({ segments }) => segments.length === 1 && segments[0] === MANIFEST);
  if (manifest === undefined)
    throw new DefinitionError(`${path}: it is not there, and each skill has one.`);
  if (!('text' in manifest.content)) throw new DefinitionError(`${path}: it is no text in UTF-8.`);
  const frontmatter = readFrontmatter(manifest.content.text, path, name);
  return {
    description: {
      uri: manifest.uri,
      frontmatter,
      resources: files.map(({ uri, digest, size }) => ({ uri, digest, size })),
    },
    files: files.map((file) => ({
      description: {
        uri: file.uri,
        name: file === manifest ? name : (file.segments.at(-1) ?? ''),
        description: file === manifest ? frontmatter.description : `A file of the skill ${name}.`,
        mimeType: file.mimeType,
        size: file.size,
      },
      cache: CACHE,
      watch: undefined,
      read: async () => file.content,
    })),
  };
}

const MANIFEST = 'SKILL.md';

const MEMBERS = ['folder', 'prefix'];

function resolveFolder(folder: unknown) {
  if (folder instanceof URL && folder.protocol === 'file:') return resolve(fileURLToPath(folder));
  if (typeof folder === 'string' && folder !== '') return resolve(folder);
  throw new DefinitionError(
    "Skill: folder must be the path of a folder, or its URL: new URL('./skills/refunds', import.meta.url).",
  );
}

/** A name that needs no encoding at any position of a URI. */
const SEGMENT = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,100}$/;

function readPrefix(prefix: unknown): readonly string[] {
  if (prefix === undefined) return [];
  const segments = typeof prefix === 'string' ? prefix.split('/') : [];
  if (segments.length > 0 && segments.every((segment) => SEGMENT.test(segment))) return segments;
  throw new DefinitionError(
    `Skill: prefix is ${quote(prefix, 100)}; it must be names with a slash between them, such as acme/billing: each of 1 to 100 letters, digits, "-", "_", "." and "~".`,
  );
}

/** Files change only when the program restarts. */
const CACHE: CacheHint = { ttlMs: 60_000, scope: 'public' };

// SEP-2640: the files of a skill on disk, read when it is defined.

interface ReadFile {
  /** The names of the folders below the skill's folder, and the file's own name. */
  readonly segments: readonly string[];
  readonly digest: string;
  /** In bytes. */
  readonly size: number;
  readonly mimeType: string;
  readonly content: ResourceContent;
}

/** SEP-2640 "Limits": clients do not have to accept more. */
const MAX_FILES = 512;
const MAX_BYTES = 16_777_216;

/** All files, sorted by name; names that begin with a dot are ignored. @throws DefinitionError for invalid content. */
function readSkillFiles(folder: string): readonly ReadFile[] {
  const files: ReadFile[] = [];
  let bytes = 0;

  function readFolder(segments: readonly string[]) {
    const path = join(folder, ...segments);
    const entries = readOrFail(path, () => readdirSync(path, { withFileTypes: true }))
      .filter(({ name }) => !name.startsWith('.'))
      // The same order on every machine.
      .sort((one, other) => (one.name < other.name ? -1 : 1));
    for (const entry of entries) {
      const here = [...segments, entry.name];
      if (entry.isDirectory()) {
        readFolder(here);
        continue;
      }
      const file = join(path, entry.name);
      // A link may lead anywhere, and to another place later.
      if (!entry.isFile()) throw new DefinitionError(`${file}: this is no file. Put a copy here.`);
      if (files.length === MAX_FILES) failAsTooLarge(`${MAX_FILES} files`);
      const content = readOrFail(file, () => readFileSync(file));
      bytes += content.length;
      if (bytes > MAX_BYTES) failAsTooLarge(`${MAX_BYTES} bytes`);
      files.push(describeFile(here, content));
    }
  }

  function failAsTooLarge(allowed: string): never {
    throw new DefinitionError(`${folder}: a skill may have ${allowed}, and this one has more.`);
  }

  readFolder([]);
  return files;
}

function readOrFail<Content>(path: string, read: () => Content): Content {
  try {
    return read();
  } catch (error) {
    const code = getErrorCode(error);
    if (code === undefined) throw error;
    throw new DefinitionError(`${path}: it cannot be read (${code}).`);
  }
}

function describeFile(segments: readonly string[], bytes: Buffer): ReadFile {
  const isText = isUtf8(bytes);
  const ending = extname(segments.at(-1) ?? '').toLowerCase();
  return {
    segments,
    digest: `sha256:${hash('sha256', bytes, 'hex')}`,
    size: bytes.length,
    mimeType: MIME_TYPES[ending] ?? (isText ? 'text/plain' : 'application/octet-stream'),
    // The text has exactly these bytes, which clients compare with the digest.
    content: isText ? { text: bytes.toString('utf8') } : { blob: bytes.toString('base64') },
  };
}

const MIME_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.html': 'text/html',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.mjs': 'text/javascript',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.py': 'text/x-python',
  '.sh': 'application/x-sh',
  '.svg': 'image/svg+xml',
  '.toml': 'application/toml',
  '.webp': 'image/webp',
  '.xml': 'application/xml',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
};

// SEP-2640, Agent Skills: the frontmatter of SKILL.md, which is YAML between two lines of three hyphens.

/** Agent Skills, "name": words of lower-case letters and digits, separated by hyphens. */
const NAME = /^(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*$/;
const MAX_DESCRIPTION = 1_024;
/** Reserved for MCP extensions, none of which is defined yet (SEP-2640). */
const RESERVED = 'io.modelcontextprotocol/';

const HEAD = /^\uFEFF?---[ \t]*\r?\n/;
const TAIL = /^---[ \t]*(\r?\n|$)/m;

/**
 * @param path The file's path, for messages.
 * @param folder The name of the folder that contains the file.
 * @throws DefinitionError with file and line
 */
function readFrontmatter(text: string, path: string, folder: string): SkillFrontmatter {
  const failAt = (at: number, problem: string): never => {
    throw new DefinitionError(`${path}:${at}: ${problem}`);
  };
  const members = readMembers(text, failAt);
  const findMember = (wanted: string) => members.find((member) => member.name === wanted);

  function readText(wanted: string, max: number, allowed: string) {
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
  if (name !== folder)
    failAt(
      line,
      `name is ${quote(name)}, and the folder is called ${quote(folder, 100)}. Both must be the same.`,
    );
  const description = readText(
    'description',
    MAX_DESCRIPTION,
    `a text of 1 to ${MAX_DESCRIPTION} characters that says what the skill does and when to use it`,
  );
  const metadata = findMember('metadata')?.value;
  const reserved =
    metadata?.kind === 'object' &&
    metadata.members.find((member) => member.name.startsWith(RESERVED));
  if (reserved)
    failAt(
      reserved.line,
      `metadata must have no names that begin with ${RESERVED}: they belong to MCP.`,
    );
  return { ...toJson(members, failAt), name, description };
}

const NAME_ALLOWED = '1 to 64 lower-case letters and digits, in words with one hyphen between them';

type FailAt = (line: number, problem: string) => never;

function readMembers(text: string, failAt: FailAt): readonly MemberNode[] {
  const head = HEAD.exec(text)?.[0];
  if (head === undefined)
    return failAt(
      1,
      'a SKILL.md begins with a line ---, then name and description in YAML, then a line ---.',
    );
  const body = text.slice(head.length);
  const end = TAIL.exec(body);
  if (end === null) return failAt(1, 'the YAML that begins here has no line --- at its end.');
  // The lines of the file: the first one has the hyphens.
  const read = readSyntax(`\n${body.slice(0, end.index)}`, 'yaml');
  if (read.kind === 'broken') return failAt(Math.max(read.line, 2), read.message);
  const { root } = read;
  return root.kind === 'object'
    ? root.members
    : failAt(2, 'names and their values are expected here, such as name: refunds.');
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
  if (node.kind === 'object') return toJson(node.members, failAt);
  // YAML has numbers that JSON cannot represent.
  return typeof node.value !== 'number' || Number.isFinite(node.value)
    ? node.value
    : failAt(node.line, 'JSON has no such number. Put it in quotes.');
}
