import {
  type Command,
  type CommandArgument,
  type OptionRow,
  toFlag,
} from '../../src/cli/command-line/command.ts';
import { COMMANDS, DEFAULT_COMMAND } from '../../src/cli/commands.ts';
import { renderTable } from './table.ts';

/** `docs/cli.md`, from the rows of the commands. */
export const renderCliPage = (): string => `# Command line

\`postern COMMAND [options]\`; without a command it is \`postern ${DEFAULT_COMMAND}\`. In a folder that
[\`postern init\`](#init) wrote, after \`npm install\`, and in a checkout, after \`npm ci\`, type \`npx postern\`. In any other folder,
\`npx postern\` would run whatever has that name in the npm registry: Postern is not there. \`postern COMMAND --help\` prints the same text.

Settings are environment variables, and \`.env\` in the current folder fills in those that the environment does not set
([Settings](settings.md)).

${renderTable(
  ['Exit code', 'Meaning'],
  [
    ['0', 'It worked'],
    ['1', 'It failed, or a check found something'],
    ['2', 'The command line is wrong: stderr names the mistake, and what was probably meant'],
  ],
)}
Output is coloured only in terminals; \`NO_COLOR=1\` turns colours off, \`FORCE_COLOR=1\` on. With \`--json\`, stdout is one JSON document; \`lock\`
and \`rules test\` leave it empty if the reason for a failure is on stderr.

${COMMANDS.map(renderCommand).join('\n')}`;

function renderCommand(command: Command): string {
  const { name, summary, description, operands = [], options, examples, exitCode1 } = command;
  const rows = Object.entries(options).map(([key, row]) => [
    `\`${describeOption(toFlag(key), row)}\``,
    describeSummary(row),
  ]);
  return [
    `## ${name}`,
    [toSentence(summary), ...description].map(markUrls).join('\n\n'),
    ...operands.map(describeArgument),
    ...(rows.length === 0 ? [] : [renderTable(['Option', 'What it does'], rows).trimEnd()]),
    ...(exitCode1 === undefined ? [] : [`Exit code 1: ${exitCode1}.`]),
    Object.entries(examples)
      .map(([typed, does]) => `\`\`\`sh\n# ${does}\n${typed}\n\`\`\``)
      .join('\n\n'),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

const describeOption = (flag: string, row: OptionRow): string => {
  if (row.kind === 'flag') return flag;
  return row.kind === 'switch' ? `${flag}, ${flag.replace('--', '--no-')}` : `${flag} ${row.value}`;
};

const describeSummary = (row: OptionRow): string =>
  row.kind === 'choice' ? `${row.summary}: ${row.choices.join(', ')}` : row.summary;

function describeArgument({ name, summary, choices }: CommandArgument): string {
  const allowed = choices === undefined ? '' : `: ${choices.map((one) => `\`${one}\``).join(', ')}`;
  return `\`${name}\` is ${markUrls(summary)}${allowed}.`;
}

/** As code: the site would check where it leads. */
const markUrls = (text: string): string => text.replace(/https?:\/\/[\w.:/-]*\w/g, '`$&`');

const toSentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
