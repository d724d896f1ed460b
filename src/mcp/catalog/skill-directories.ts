// SEP-2640: the directories of skills, as the URIs of the files in them say.
import type { ResourceDescription } from './content.ts';

/** As MIME type. */
export const DIRECTORY = 'inode/directory';

const MANIFEST = '/SKILL.md';

/** The folder of the skill, without a slash at the end; undefined for what is no URI of a `SKILL.md`. */
export function findSkillRoot(uri: string): string | undefined {
  return uri.endsWith(MANIFEST) ? uri.slice(0, -MANIFEST.length) : undefined;
}

/** The same of the URI of a skill, which always ends so. */
export const requireSkillRoot = (uri: string): string => uri.slice(0, -MANIFEST.length);

/** A skill lies in no more, by the slashes in its URI: what each of them costs, strangers decide. */
export const MAX_DIRECTORIES = 32;

/** The directories that a URI lies in, from the outermost down: as many as a skill may lie in. */
export function listDirectories(uri: string): readonly string[] {
  const directories: string[] = [];
  for (
    let end = uri.indexOf('/');
    end !== -1 && directories.length < MAX_DIRECTORIES;
    end = uri.indexOf('/', end + 1)
  ) {
    directories.push(uri.slice(0, end));
  }
  return directories;
}

/** A file, or a directory, as far as it is described. */
type Child = Pick<ResourceDescription, 'uri' | 'name' | 'mimeType'>;

/** Lists what lies in the directory itself, in the order of the files; undefined where none of them lies in or below it. */
export function listChildren<File extends { readonly uri: string }>(
  files: readonly File[],
  directory: string,
): readonly (File | Child)[] | undefined {
  const start = `${directory}/`;
  const children = new Map<string, File | Child>();
  for (const file of files) {
    if (!file.uri.startsWith(start)) continue;
    const [name = '', ...below] = file.uri.slice(start.length).split('/');
    const uri = start + name;
    if (below.length === 0) children.set(uri, file);
    else if (!children.has(uri)) children.set(uri, describeDirectory(uri, name));
  }
  return children.size === 0 ? undefined : [...children.values()];
}

const describeDirectory = (uri: string, name: string): Child => ({
  uri,
  name: decodeName(name),
  mimeType: DIRECTORY,
});

/** True if it names what lies in its directory, also to a client that puts the file on a disk. */
export function isPlainName(segment: string): boolean {
  const name = decodeName(segment);
  return !['', '.', '..'].includes(name) && !/[/\\\0]/.test(name);
}

/** As people read it. */
export function decodeName(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
