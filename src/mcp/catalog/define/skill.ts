// SEP-2640: skills, each a folder with a SKILL.md.
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DefinitionError } from '../../../errors/gateway-error.ts';
import { quote } from '../../../platform/text.ts';
import type { CacheHint } from '../content.ts';
import type { ResourceDescription, SkillDescription, SkillFile } from '../descriptions.ts';
import { checkMembers } from './check-members.ts';
import type { Resource } from './resource.ts';
import { type ReadFile, readSkillFiles } from './skill-files.ts';
import { readFrontmatter } from './skill-frontmatter.ts';

/** Made by {@link defineSkill}. */
export interface Skill {
  readonly description: SkillDescription & { readonly resources: readonly SkillFile[] };
  /** All of its files, in the order of `description.resources`. */
  readonly files: readonly Resource[];
}

/** What {@link defineSkill} takes. */
export interface SkillDefinition {
  /** The folder with the `SKILL.md`; a path is relative to where the program was started. */
  readonly folder: string | URL;
  /** What its URI has before its name: with `acme/billing` it is `skill://acme/billing/refunds/SKILL.md`. */
  readonly prefix?: string;
}

/**
 * Defines a skill (SEP-2640, Agent Skills): a folder with a `SKILL.md`, whose name is that of the folder, and with files that it
 * refers to. All of it is read now, and never again: what is listed, its digests and what is read are always of the same files.
 * Names that begin with a dot are left out.
 *
 * @throws DefinitionError at once, with file and line, when the folder is no skill: no `SKILL.md`, a wrong name or description,
 * more than 512 files or 16 MiB, links.
 */
export function defineSkill(skill: SkillDefinition): Skill {
  checkMembers('Skill', skill, MEMBERS);
  const folder = readFolder(skill.folder);
  const prefix = readPrefix(skill.prefix);
  const files = readSkillFiles(folder);
  const path = join(folder, MANIFEST);
  const manifest = files.find(({ segments }) => segments.length === 1 && segments[0] === MANIFEST);
  if (manifest === undefined) {
    throw new DefinitionError(`${path}: it is not there, and each skill has one.`);
  }
  if (!('text' in manifest.content)) {
    throw new DefinitionError(`${path}: it is no text in UTF-8.`);
  }
  const name = basename(folder);
  const frontmatter = readFrontmatter(manifest.content.text, path, name);
  const root = `skill://${[...prefix, name].join('/')}`;
  const toUri = ({ segments }: ReadFile) => [root, ...segments.map(encodeURIComponent)].join('/');
  return {
    description: {
      uri: toUri(manifest),
      frontmatter,
      resources: files.map((file) => ({
        uri: toUri(file),
        digest: file.digest,
        size: file.size,
      })),
    },
    files: files.map((file) =>
      createFile(
        file,
        file === manifest
          ? { uri: toUri(file), name, description: frontmatter.description }
          : {
              uri: toUri(file),
              name: file.segments.at(-1) ?? '',
              description: `A file of the skill ${name}.`,
            },
      ),
    ),
  };
}

const MANIFEST = 'SKILL.md';

const MEMBERS = { folder: 'any', prefix: 'any' } as const;

function readFolder(folder: unknown): string {
  if (folder instanceof URL && folder.protocol === 'file:') return resolve(fileURLToPath(folder));
  if (typeof folder === 'string' && folder !== '') return resolve(folder);
  throw new DefinitionError(
    "Skill: folder must be the path of a folder, or its URL: new URL('./skills/refunds', import.meta.url).",
  );
}

/** What needs no encoding in a URI, at whatever place. */
const SEGMENT = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,100}$/;

function readPrefix(prefix: unknown): readonly string[] {
  if (prefix === undefined) return [];
  const segments = typeof prefix === 'string' ? prefix.split('/') : [];
  if (segments.length > 0 && segments.every((segment) => SEGMENT.test(segment))) return segments;
  throw new DefinitionError(
    `Skill: prefix is ${quote(prefix, 100)}; it must be names with a slash between them, such as acme/billing: each of 1 to 100 letters, digits, "-", "_", "." and "~".`,
  );
}

/** They change only with a new start of the program. */
const CACHE: CacheHint = { ttlMs: 60_000, scope: 'public' };

const createFile = (
  { mimeType, size, content }: ReadFile,
  described: Pick<ResourceDescription, 'uri' | 'name' | 'description'>,
): Resource => ({
  description: { ...described, mimeType, size },
  cache: CACHE,
  watch: undefined,
  read: async () => content,
});
