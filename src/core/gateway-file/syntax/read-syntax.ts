import type { SyntaxResult } from './file-node.ts';
import { readJson } from './read-json.ts';
import { readYaml } from './read-yaml.ts';

export type FileFormat = 'json' | 'yaml';

const READERS: Readonly<Record<FileFormat, (text: string) => SyntaxResult>> = {
  json: readJson,
  yaml: readYaml,
};

/** The file as a tree. A byte order mark, which some editors write, is no part of it. */
export function readSyntax(text: string, format: FileFormat): SyntaxResult {
  const content = text.replace(/^\uFEFF/, '');
  if (content.trim() === '') return { kind: 'broken', line: 1, message: 'The file is empty.' };
  try {
    return READERS[format](content);
  } catch (error) {
    // The libraries follow what is nested by calling themselves.
    if (error instanceof RangeError)
      return { kind: 'broken', line: 1, message: 'The file is nested too deep.' };
    throw error;
  }
}
