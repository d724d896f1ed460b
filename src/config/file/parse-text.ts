// The text of a configuration file, read once by its shape, with everything that is wrong with it.
import type { Problem } from '../problem.ts';
import type { Env } from '../setting.ts';
import type { FileReading, Shape } from './shapes/shape.ts';
import { type FileFormat, readSyntax } from './syntax/read-syntax.ts';

export interface TextSource {
  /** As it is named in messages. */
  readonly fileName: string;
  readonly format: FileFormat;
  /** The variables among which `${VAR}` is looked up. */
  readonly env: Env;
}

/** `broken` is what is neither JSON nor YAML. */
export function parseText<Content>(
  text: string,
  { fileName, format, env }: TextSource,
  shape: Shape<Content>,
) {
  const syntax = readSyntax(text, format);
  if (syntax.kind === 'broken') {
    const problem: Problem = { place: `${fileName}:${syntax.line}`, message: syntax.message };
    return { kind: 'broken', problem } as const;
  }

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
    kind: 'read' as const,
    root: syntax.root,
    /** Undefined where nothing could be made of it, which was reported. */
    content: shape.read(syntax.root, { path: '', context }),
    /** Found by the shape, and by whoever goes on checking; in the order of the file. */
    listProblems: () => problems.toSorted((a, b) => a.line - b.line).map(({ problem }) => problem),
    /** Members of other programs that were left out, as a warning; none where there are none. */
    describeIgnored(): readonly string[] {
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
