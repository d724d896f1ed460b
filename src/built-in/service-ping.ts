// §2.4: service_ping.
import { defineTool } from 'postern/define';

export const servicePing = defineTool({
  name: 'service_ping',
  description: 'Answers with the name of the service and your message.',
  inputSchema: {
    type: 'object',
    properties: {
      message: { type: 'string', description: 'Text to send back; pong if left out.' },
    },
    additionalProperties: false,
  },
  run({ message = 'pong' }, { service }) {
    return { content: [{ type: 'text', text: `${service.displayName} MCP Server: ${message}` }] };
  },
});
