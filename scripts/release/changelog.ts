export interface Section {
  /** Its line, such as `## 0.2.0 - 2026-12-01`. */
  readonly heading: string;
  readonly text: string;
}

/** The changelog's section about a version, which has to be its first. */
export function findSection(changelog: string, version: string): Section | undefined {
  const [, first = ''] = changelog.split(/^(?=## )/m);
  const [heading = '', ...lines] = first.split('\n');
  if (!heading.startsWith(`## ${version}`)) return undefined;
  return { heading, text: `${lines.join('\n').trim()}\n` };
}

export const hasDate = ({ heading }: Section): boolean =>
  /^## \S+ - \d{4}-\d{2}-\d{2}$/.test(heading);
