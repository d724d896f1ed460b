// What `postern init` says at its end.
import { readFileSync } from 'node:fs';
import { styleText } from 'node:util';
import type { Answers } from './answers.ts';
import { findProvider } from './providers.ts';

export interface InitResult {
  readonly answers: Answers;
  /** Names of files. */
  readonly written: readonly string[];
  /** Whether the package lies in node_modules of this folder. */
  readonly isInstalled: boolean;
}

export function describeNextSteps({ answers, written, isInstalled }: InitResult): string {
  const { provider: choice, tool } = answers;
  const provider = findProvider(choice);
  const command = runsByNpx() || isInstalled ? 'npx postern' : 'postern';
  const steps = [
    ...(provider === undefined
      ? []
      : [
          ['', `Register a client at ${provider.title}, with the redirect URI`],
          ['', 'http://localhost:3000/oauth/callback, and replace each … in .env'],
          [`${command} doctor`, 'says whether provider and settings fit together'],
        ]),
    ...(tool && !isInstalled
      ? [['npm install PACKAGE', 'Postern itself, for the test and for your editor']]
      : []),
    ...(tool ? [['node --test', 'calls your first tool']] : []),
    [`${command} dev`, 'starts the gateway on http://localhost:3000'],
    [`${command} connect`, 'says how to add it to Claude, Cursor, VS Code and others'],
  ];
  const width = Math.max(...steps.map(([typed = '']) => typed.length));
  const lines = steps.map(([typed = '', does = '']) =>
    typed === '' ? `  ${does}` : `  ${styleText('bold', typed.padEnd(width))}  ${does}`,
  );
  return [
    `Wrote ${written.join(', ') || 'nothing'}.`,
    ...(isEnvIgnored() ? [] : ['', 'Add .env to .gitignore: there are secrets in it.']),
    '',
    'Next:',
    ...lines,
  ].join('\n');
}

const runsByNpx = (): boolean => process.env.npm_command === 'exec';

function isEnvIgnored(): boolean {
  try {
    return /^\/?(\.env|\.env\*|\*\.env|\.\*)$/m.test(readFileSync('.gitignore', 'utf8'));
  } catch {
    return false;
  }
}
