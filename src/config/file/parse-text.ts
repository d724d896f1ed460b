// The text of a configuration file, read once by its shape, with everything that is wrong with it.
import type { Problem } from '../problem.ts';
import type { Env } from '../setting.ts';
import type { FileReading, Shape } from './shapes/shape.ts';
import { type FileFormat, type FileNode, readSyntax } from './syntax/read-syntax.ts';

export interface TextSource {
  /** As it is named in messages. */
  readonly fileName: string;
  readonly format: FileFormat;
  /** What `${VAR}` is looked up in. */
  readonly env: Env;
}

export type ParsedText<Content> =
  | {
      readonly kind: 'read';
      readonly root: FileNode;
      /** Undefined where nothing could be made of it, which was reported. */
      readonly content: Content | undefined;
      /** Of the shape, and of whoever goes on checking; in the order of the file. */
      listProblems(): readonly Problem[];
      /** Members of other programs that were left out, as a warning; none where there are none. */
      describeIgnored(): readonly string[];
      readonly warnings: readonly string[];
    }
  /** Neither JSON nor YAML. */
  | { readonly kind: 'broken'; readonly problem: Problem };

export function parseText<Content>(
  text: string,
  { fileName, format, env }: TextSource,
  shape: Shape<Content>,
): ParsedText<Content> {
  const syntax = readSyntax(text, format);
  if (syntax.kind === 'broken')
    return {
      kind: 'broken',
      problem: { place: `${fileName}:${syntax.line}`, message: syntax.message },
    };

  const problems: { readonly line: number; readonly problem: Problem }[] = [];
  const warnings: string[] = [];
  const ignored = new Set<string>();
  const context: FileReading = {
    env,
    report(line, path, message) {
      const place = `${fileName}:${line}${path === '' ? '' : `: ${path}`}`;
      problems.push({ line, problem: { place, message } });
    },
    warn: (line, path, message) => void warnings.push(`${fileName}:${line}: ${path}: ${message}`),
    reportIgnored: (name) => void ignored.add(name),
  };
  return {
    kind: 'read',
    root: syntax.root,
    content: shape.read(syntax.root, { path: '', context }),
    listProblems: () => problems.toSorted((a, b) => a.line - b.line).map(({ problem }) => problem),
    describeIgnored() {
      const names = [...ignored].sort().join(', ');
      return names === ''
        ? []
        : [
            `${fileName}: these members of other programs mean nothing here and are ignored: ${names}.`,
          ];
    },
    warnings,
  };
}
