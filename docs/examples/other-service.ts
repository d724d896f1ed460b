import { defineTool, ToolError } from 'postern/define';

/** The URL is a parameter, so that tests can pass their own. */
export const createOnCall = (url: string) =>
  defineTool({
    name: 'on_call',
    description: 'Says who is on call now.',
    annotations: { readOnlyHint: true },
    inputSchema: { type: 'object', additionalProperties: false },
    async run(_args, { trace, signal }) {
      const answer = await fetch(url, {
        // W3C headers: the other service's spans join the trace of the caller.
        headers: { ...trace },
        // Whichever comes first: the caller leaves, or ten seconds are over.
        signal: AbortSignal.any([signal, AbortSignal.timeout(10_000)]),
      });
      // For the model to read. Of any other error it only sees a reference to the log.
      if (answer.status === 404) throw new ToolError('Nobody is on call now. Ask again later.');
      if (!answer.ok) throw new Error(`The rota answered ${answer.status}`);
      return { content: [{ type: 'text', text: `${await answer.text()} is on call.` }] };
    },
  });
