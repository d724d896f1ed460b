import { defineCommand } from '../command-line/command.ts';

export const completionCommand = defineCommand({
  name: 'completion',
  summary: 'print a script by which the shell completes commands and options',
  description: ['The script itself runs nothing of postern. Print it again after an update.'],
  operands: [
    { name: 'SHELL', summary: 'the shell', isRequired: true, choices: ['bash', 'zsh', 'fish'] },
  ],
  options: {},
  examples: {
    'echo \'eval "$(postern completion bash)"\' >> ~/.bashrc': 'for bash, in every new shell',
    'echo \'eval "$(postern completion zsh)"\' >> ~/.zshrc':
      'for zsh; .zshrc must run compinit before',
    'postern completion fish > ~/.config/fish/completions/postern.fish': 'for fish',
  },
  async run(_options, [shell], { commands, console }) {
    const { renderCompletion } = await import('../completion/render-completion.ts');
    console.log(renderCompletion(shell, commands));
  },
});
