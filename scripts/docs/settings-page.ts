import { isDeepStrictEqual } from 'node:util';
import { loadConfig } from '../../src/core/config/load.ts';
import { CHAPTERS, type Setting } from '../../src/core/config/setting.ts';
import { settings } from '../../src/core/config/settings.ts';
import { table } from './table.ts';

type Named = readonly [name: string, setting: Setting<unknown>];

const all = Object.entries(settings) as readonly Named[];

const inChapter = (chapter: string): readonly Named[] =>
  all.filter(([, setting]) => setting.chapter === chapter);

export const settingsPage = (): string => `# Settings

Every setting is an environment variable. All are read once, at start; an empty one counts as not
set. When a value is wrong the service does not start: it names every wrong variable, what was
given and what is allowed, and exits with code 1. Values of secrets are never printed.

To keep the variables in a file, copy \`.env.example\` to \`.env\` in the folder in which you start
Postern. \`postern start\` and \`postern dev\` read it, and say in the log, or in their first lines,
which settings they took from it. A variable of the environment wins. A gateway of your own
([createGateway](authors.md#a-gateway-of-your-own)) does not read the file.

\`--port N\` wins over \`PORT\`. \`postern --help\` lists the other options.

Once it serves, \`postern start\` prints a line \`Listening.\` at \`info\`. It has the address (\`host\`,
\`port\`, \`mcp\`), the \`mode\` (\`OAUTH_MODE\`), the \`issuer\`, the \`store\` (the folder, or the host of
Redis), the \`version\` and the version of Node.js (\`node\`).

${settingsTables('##')}`;

/** One table for each chapter, under headings of the given level. */
export const settingsTables = (level: '##' | '###'): string =>
  CHAPTERS.map((chapter) => {
    const rows = inChapter(chapter).map(([, { variable, shown, rule, help }]) => [
      `\`${variable}\``,
      // Some defaults are sentences.
      shown === '' || shown.includes(' ') ? shown : `\`${shown}\``,
      help,
      rule.allowed,
    ]);
    return `${level} ${chapter}\n\n${table(['Variable', 'Default', 'Meaning', 'Allowed'], rows)}`;
  }).join('\n');

export const envExample = (): string =>
  `# Settings of Postern; docs/settings.md has them as a table. Copy this file to .env, and take the #
# away from what you set: postern start and postern dev read it from the current folder.
${CHAPTERS.map((chapter) => `\n\n# ${chapter}\n${inChapter(chapter).map(envEntry).join('')}`).join('')}`;

const defaults: Readonly<Record<string, unknown>> = {
  ...loadConfig({ OIDC_ISSUER: 'https://id.example.com' }),
};

function envEntry([name, { variable, rule, shown, help }]: Named): string {
  // Some defaults are sentences ("BASE_URL, …"): those are told, not set.
  const isValue = isDeepStrictEqual(rule.parse(shown), defaults[name]);
  const told = isValue || shown === '' ? '' : ` Default: ${shown}.`;
  const lines = wrap(`${help}${told} Allowed: ${rule.allowed}.`);
  return `\n${lines.map((line) => `# ${line}\n`).join('')}#${variable}=${isValue ? shown : ''}\n`;
}

const wrap = (text: string): readonly string[] => text.match(/\S.{0,95}(?=\s|$)/g) ?? [];
