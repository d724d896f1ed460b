// SEP-2640: a skill as a server lists it, read without trust. It goes on as it is, or not at all: clients compare what its SKILL.md
// says with what was listed, and load nothing that differs.

import type { PolicyItem } from '../../mcp/calls/policy.ts';
import type { RawItem } from '../../mcp/catalog/catalog.ts';
import {
  decodeName,
  findSkillRoot,
  isPlainName,
  listDirectories,
  MAX_DIRECTORIES,
} from '../../mcp/catalog/content.ts';
import { isObject } from '../../platform/json.ts';
import { isAppUri } from '../apps/app-tools.ts';
import { hasHidden } from '../clean-item.ts';

/** SEP-2640 "Limits". */
const MAX_FILES = 512;
const MAX_FILE_BYTES = 16_777_216;
/** Characters of a skill as JSON: 512 files with URIs of some 400 characters, and what it says of itself. */
const MAX_SKILL = 262_144;
/** Agent Skills, "name" and "description". */
const NAME = /^[a-z0-9-]{1,64}$/;
const MAX_DESCRIPTION = 4_096;

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Its URI was looked at before. Undefined where clients can use it, else the rest of a sentence that begins with its name. */
export function findSkillProblem(
  item: RawItem,
  findUriProblem: (uri: string) => string | undefined,
): string | undefined {
  const { uri, frontmatter, resources } = item;
  const root = typeof uri === 'string' ? findSkillRoot(uri) : undefined;
  if (root === undefined) return 'has a URI that does not end with /SKILL.md';
  // Towards clients those have the name of their server in them, which nothing in a skill may have.
  if (isAppUri(root)) return 'has a URI of an app (ui://)';
  if (listDirectories(`${root}/`).length >= MAX_DIRECTORIES)
    return `lies in ${MAX_DIRECTORIES} folders or more`;
  if (!root.split('/').every((segment) => segment === '' || isPlainName(segment)))
    return 'has a URI with "." or ".." in it, or with a name that has a slash';
  if (JSON.stringify(item).length > MAX_SKILL) return `is larger than ${MAX_SKILL} characters`;
  return (
    findFrontmatterProblem(frontmatter, root) ??
    (resources === 'dynamic' ? undefined : findFilesProblem(resources, root, findUriProblem))
  );
}

function findFrontmatterProblem(frontmatter: unknown, root: string): string | undefined {
  if (!isObject(frontmatter)) return 'has no frontmatter';
  const { name, description } = frontmatter;
  if (typeof name !== 'string' || !NAME.test(name))
    return 'has a name that Agent Skills do not allow: it may have 1 to 64 lower-case letters, digits and "-"';
  if (decodeName(root.slice(root.lastIndexOf('/') + 1)) !== name)
    return 'has a name that is not the last part of its path';
  if (typeof description !== 'string' || description.trim() === '') return 'has no description';
  if (description.length > MAX_DESCRIPTION)
    return `has a description of more than ${MAX_DESCRIPTION} characters`;
  return hides(frontmatter) ? 'has characters in its frontmatter that cannot be seen' : undefined;
}

/** True if a text or a name in it has characters that people do not see, and models read. */
function hides(value: unknown): boolean {
  if (typeof value === 'string') return hasHidden(value);
  if (Array.isArray(value)) return value.some(hides);
  return isObject(value) && Object.entries(value).some((member) => member.some(hides));
}

function findFilesProblem(
  files: unknown,
  root: string,
  findUriProblem: (uri: string) => string | undefined,
): string | undefined {
  if (!Array.isArray(files)) return 'lists no files, and does not say that they are "dynamic"';
  if (files.length > MAX_FILES) return `has more than ${MAX_FILES} files`;
  const uris = new Set<string>();
  let bytes = 0;
  for (const file of files) {
    if (!isFile(file)) return 'has a file without a URI, a SHA-256 digest or a size';
    const problem = findUriProblem(file.uri);
    if (problem !== undefined) return `has a file whose URI ${problem}`;
    if (!file.uri.startsWith(`${root}/`)) return 'has a file that does not lie in its folder';
    if (
      !file.uri
        .slice(root.length + 1)
        .split('/')
        .every(isPlainName)
    )
      return 'has a file whose path has "." or ".." in it, or a name that has a slash or none';
    if (uris.has(file.uri)) return 'lists a file twice';
    uris.add(file.uri);
    bytes += file.size;
  }
  if (!uris.has(`${root}/SKILL.md`)) return 'does not list its SKILL.md';
  return bytes > MAX_FILE_BYTES ? `has files of more than ${MAX_FILE_BYTES} bytes` : undefined;
}

interface File {
  readonly uri: string;
  readonly size: number;
}

const isFile = (file: unknown): file is File =>
  isObject(file) &&
  typeof file.uri === 'string' &&
  typeof file.digest === 'string' &&
  DIGEST.test(file.digest) &&
  typeof file.size === 'number' &&
  Number.isSafeInteger(file.size) &&
  file.size >= 0;

/** The files of a skill that clients can use, as far as they are known: at least its SKILL.md. */
export function listFiles({ uri, resources }: RawItem, server: string): readonly PolicyItem[] {
  const uris = Array.isArray(resources)
    ? resources.flatMap((file: unknown) => (isFile(file) ? [file.uri] : []))
    : [String(uri)];
  return uris.map((name) => ({ kind: 'resource', name, server, annotations: NONE }));
}

const NONE = {};
