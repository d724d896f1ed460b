import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/own-files.ts';
import { defineCommand, JSON_OUTPUT } from '../command-line/command.ts';

export const versionCommand = defineCommand({
  name: 'version',
  summary: 'print the version',
  description: [],
  options: { json: JSON_OUTPUT },
  examples: {
    'postern version --json': 'with the version of Node.js, for a bug report',
  },
  run({ json }, _operands, { console }) {
    const { version: node, platform, arch } = process;
    const facts = { name: PACKAGE_NAME, version: PACKAGE_VERSION, node, platform, arch };
    console.log(json ? JSON.stringify(facts, undefined, 2) : PACKAGE_VERSION);
  },
});
