import { baseUrl } from '../../config/rules.ts';
import { addScheme } from '../command/add-scheme.ts';
import { defineCommand, textOption } from '../command-line/command.ts';

export const exportCommand = defineCommand({
  name: 'export',
  summary: 'print the server.json by which a registry of MCP servers lists the gateway',
  description: [
    'Prints to standard output; nothing is published. Name, description, logo and address are those of the settings: SERVER_CARD_NAME, SERVER_CARD_DESCRIPTION, SERVICE_DISPLAY_NAME, SERVICE_LOGO_URL and BASE_URL. A registry takes only names that begin with a domain, in reverse order, which you show to be yours.',
  ],
  operands: [{ name: 'WHAT', summary: 'the document', choices: ['server.json'], isRequired: true }],
  options: {
    url: textOption(
      'URL',
      'https://mcp.example.com',
      'the public address of the gateway, instead of BASE_URL',
      {
        findProblem: (given) =>
          baseUrl.parse(addScheme(given)) === undefined
            ? `${JSON.stringify(given)} is not ${baseUrl.allowed}.`
            : undefined,
      },
    ),
    view: textOption(
      'NAME',
      'research',
      'a view or server of the configuration file, in place of everything',
    ),
    config: textOption(
      'FILE',
      'postern.yaml',
      'for --view: the configuration file, instead of POSTERN_CONFIG',
    ),
    as: textOption(
      'VERSION',
      '1.4.0',
      'the version to publish, instead of that of Postern: a registry takes each only once',
      {
        findProblem: (given) =>
          /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/.test(given) && given.length <= 255
            ? undefined
            : `${JSON.stringify(given)} is no version. Write three numbers, such as 1.4.0 or 1.4.0-rc.1.`,
      },
    ),
  },
  examples: {
    'postern export server.json >server.json': 'what is to be published',
    'postern export server.json --view research --as 1.4.0': 'one view, under a version of its own',
  },
  run: async (options, _operands, invocation) =>
    (await import('../export/export-server-json.ts')).exportServerJson(options, invocation),
});
