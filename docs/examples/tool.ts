import { defineTool } from 'postern/define';

const versions = new Map([
  ['checkout', '2.7.1'],
  ['search', '5.0.3'],
]);

export const deployedVersion = defineTool({
  name: 'deployed_version',
  title: 'Deployed version',
  description: 'Says which version of a service runs in production.',
  icons: [{ src: 'https://example.com/rocket.png', mimeType: 'image/png', sizes: ['48x48'] }],
  annotations: { readOnlyHint: true, openWorldHint: false },
  inputSchema: {
    type: 'object',
    properties: { service: { type: 'string', description: 'For example checkout.' } },
    required: ['service'],
    additionalProperties: false,
  },
  run({ service }) {
    const version = versions.get(service);
    if (version === undefined) {
      const known = [...versions.keys()].join(', ');
      return {
        content: [{ type: 'text', text: `There is no service ${service}, only ${known}.` }],
        isError: true,
      };
    }
    return { content: [{ type: 'text', text: `${service} runs ${version}.` }] };
  },
});
