import { SETTING_GROUPS, type SettingGroup } from '../../src/config/config.ts';
import type { Default, Setting } from '../../src/config/setting.ts';
import { renderTable } from './table.ts';

/** `docs/settings.md`: for each group a short table, with details below it. */
export const settingsPage = (): string => `# Settings

Every setting is an environment variable. All are read once, at startup. An empty variable counts as unset.
If a value is invalid, the service does not start: it names every invalid variable, what was given and
what is allowed, and exits with code 1. It never prints the values of secrets.

To keep the variables in a file, copy \`.env.example\` to \`.env\` in the folder where you start Postern.
\`postern start\` and \`postern dev\` read it, and say which settings they took from it. Variables of the
environment win. Your own gateway ([createGateway](authors.md#your-own-gateway)) does not read the
file.

\`--port N\` wins over \`PORT\`. \`postern --help\` lists the other options.

When it is ready, \`postern start\` logs a line \`Listening.\` with the address (\`host\`, \`port\`, \`mcp\`), the
\`mode\` (\`OAUTH_MODE\`), the \`issuer\`, the \`store\` (the folder, or the host of Redis), the \`version\`, and
the version of Node.js (\`node\`).

${SETTING_GROUPS.map(renderGroup).join('\n')}`;

export const envExample = (): string =>
  `# The settings of Postern; docs/settings.md describes them. Copy this file to .env and remove the # in
# front of what you set: postern start and postern dev read .env in the current folder.
${SETTING_GROUPS.map(({ title, settings }) => `\n\n# ${title}\n${settings.map(renderEnvEntry).join('')}`).join('')}`;

function renderGroup({ title, settings }: SettingGroup): string {
  const rows = settings.map((setting) => [
    asCode(setting.variable),
    markVariables(renderShortDefault(setting.default)),
    markVariables(appendMode(setting, setting.summary)),
  ]);
  const plain = settings.filter((setting) => listDetails(setting).length === 0);
  const rules = [...new Set(plain.map(({ rule }) => rule.allowed))].map((allowed) => {
    const names = plain.filter(({ rule }) => rule.allowed === allowed);
    return renderBullet(names, [`Allowed: ${allowed}.`]);
  });
  const described = settings.flatMap((setting) => {
    const sentences = listDetails(setting);
    return sentences.length === 0
      ? []
      : [renderBullet([setting], [...sentences, `Allowed: ${setting.rule.allowed}.`])];
  });
  return `## ${title}\n\n${renderTable(['Setting', 'Default', 'What it is'], rows)}\n${[...described, ...rules].join('')}`;
}

const renderBullet = (
  settings: readonly Setting<unknown>[],
  sentences: readonly string[],
): string =>
  `- ${settings.map(({ variable }) => asCode(variable)).join(', ')}: ${markVariables(sentences.join(' '))}\n`;

/** The details that do not fit into the table, as sentences of Markdown. */
function listDetails({ details, default: fallback }: Setting<unknown>): readonly string[] {
  const exceptions = describeExceptions(fallback);
  return [
    ...(details === undefined ? [] : [details]),
    ...(exceptions.length === 0 || isShort(exceptions)
      ? []
      : [`The default is ${renderDefault(fallback)}; ${exceptions.join('; ')}.`]),
  ];
}

const appendMode = ({ mode }: Setting<unknown>, sentence: string): string =>
  mode === undefined ? sentence : `${sentence} (OAUTH_MODE=${mode} only)`;

function renderShortDefault(fallback: Default<unknown>): string {
  const exceptions = describeExceptions(fallback);
  if (exceptions.length === 0) return renderDefault(fallback);
  return isShort(exceptions)
    ? [renderDefault(fallback), ...exceptions].join(', ')
    : `${renderDefault(fallback)}, varies`;
}

const renderDefault = (fallback: Default<unknown>): string =>
  'compute' in fallback ? fallback.text : asCode(writeValue(fallback));

const writeValue = ({ value, text = String(value) }: { value: unknown; text?: string }): string =>
  text;

const describeExceptions = (fallback: Default<unknown>): readonly string[] =>
  'compute' in fallback ? (fallback.exceptions ?? []).map(([text, when]) => `${text} ${when}`) : [];

const isShort = (exceptions: readonly string[]): boolean => exceptions.join(', ').length < 40;

const asCode = (text: string): string => (text === '' ? '' : `\`${text}\``);

/** Variables, with their value or without, as code where they are not. */
const markVariables = (markdown: string): string =>
  markdown.replace(/`[^`]*`|\]\([^)]*\)|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+(=[\w*]+)?/g, (text) =>
    /^[`\]]/.test(text) ? text : asCode(text),
  );

function renderEnvEntry(setting: Setting<unknown>): string {
  const { variable, rule, summary, details = '', default: fallback } = setting;
  const isComputed = 'compute' in fallback;
  const told = isComputed
    ? `Default: ${[fallback.text, ...describeExceptions(fallback)].join('; ')}.`
    : '';
  const text = [appendMode(setting, summary), details, told, `Allowed: ${rule.allowed}.`]
    .filter((sentence) => sentence !== '')
    .join(' ');
  const lines = wrapLines(toPlainText(text)).map((line) => `# ${line}\n`);
  return `\n${lines.join('')}#${variable}=${isComputed ? '' : writeValue(fallback)}\n`;
}

const toPlainText = (markdown: string): string =>
  markdown.replaceAll('`', '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');

const wrapLines = (text: string): readonly string[] => text.match(/\S.{0,95}(?=\s|$)/g) ?? [];
