"""Real agent loops with every adapter, against a scripted provider on loopback: sixty tool-calling turns."""

import asyncio
import json
import subprocess
import sys

import pytest
import trimtab
from trimtab._usage import read_usage
from upstream import TURNS, read_file, scripted

DONE = "The values add up."
QUESTION = "Add up the values in all files."
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
#: Much less than sixty results count.
FITTING = {"budget": 20_000}


def check(loop):
    """Run a loop without and with fitting: it comes to its end, valid throughout, and is smaller with."""
    sizes = {}
    for name, settings in (("without", None), ("with", FITTING)):
        with scripted() as (address, came):
            assert loop(address, settings) == DONE
        assert len(came) == TURNS + 1
        assert [faults for *_, faults in came if faults] == []
        sizes[name] = sum(size for _, size, _ in came)
    assert sizes["with"] < sizes["without"] * 0.6, sizes


def wrapped_openai(address, settings, kind="OpenAI"):
    openai = pytest.importorskip("openai")
    import trimtab.openai

    client = getattr(openai, kind)(api_key="none", base_url=f"{address}/v1", max_retries=0)
    return client if settings is None else trimtab.openai.wrap(client, **settings)


def wrapped_anthropic(address, settings, kind="Anthropic"):
    anthropic = pytest.importorskip("anthropic")
    import trimtab.anthropic

    client = getattr(anthropic, kind)(api_key="none", base_url=address, max_retries=0)
    return client if settings is None else trimtab.anthropic.wrap(client, **settings)


@pytest.mark.parametrize("stream", [False, True])
def test_openai_chat_completions(stream):
    def loop(address, settings):
        client = wrapped_openai(address, settings)
        tools = [{"type": "function", "function": {"name": "read_file", "parameters": SCHEMA}}]
        history = [{"role": "user", "content": QUESTION}]
        while True:
            asked = {"model": "gpt-5", "tools": tools, "messages": history}
            if stream:
                with client.chat.completions.stream(**asked) as events:
                    for _ in events:
                        pass
                    message = events.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(**asked).choices[0].message
            if not message.tool_calls:
                return message.content
            history.append(message)
            for call in message.tool_calls:
                result = read_file(**json.loads(call.function.arguments))
                history.append({"role": "tool", "tool_call_id": call.id, "content": result})

    check(loop)


def test_openai_responses_async():
    async def talk(address, settings):
        client = wrapped_openai(address, settings, "AsyncOpenAI")
        tools = [{"type": "function", "name": "read_file", "parameters": SCHEMA, "strict": False}]
        items = [{"role": "user", "content": QUESTION}]
        while True:
            answer = await client.responses.create(model="gpt-5", tools=tools, input=items, store=False)
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return answer.output_text
            for call in calls:
                items.append(call)
                output = read_file(**json.loads(call.arguments))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})

    check(lambda address, settings: asyncio.run(talk(address, settings)))


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_messages(stream):
    def loop(address, settings):
        client = wrapped_anthropic(address, settings)
        tools = [{"name": "read_file", "input_schema": SCHEMA}]
        history = [{"role": "user", "content": QUESTION}]
        while True:
            asked = {"model": "claude-opus-5", "max_tokens": 1000, "tools": tools, "messages": history}
            if stream:
                with client.messages.stream(**asked) as events:
                    for _ in events:
                        pass
                    answer = events.get_final_message()
            else:
                answer = client.messages.create(**asked)
            if answer.stop_reason != "tool_use":
                return answer.content[0].text
            history.append({"role": "assistant", "content": answer.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": read_file(**block.input)}
                for block in answer.content
                if block.type == "tool_use"
            ]
            history.append({"role": "user", "content": results})

    check(loop)


def test_anthropic_messages_async():
    async def talk(address, settings):
        client = wrapped_anthropic(address, settings, "AsyncAnthropic")
        tools = [{"name": "read_file", "input_schema": SCHEMA}]
        history = [{"role": "user", "content": QUESTION}]
        while True:
            answer = await client.messages.create(model="claude-opus-5", max_tokens=1000, tools=tools, messages=history)
            if answer.stop_reason != "tool_use":
                return answer.content[0].text
            call = answer.content[0]
            history.append({"role": "assistant", "content": answer.content})
            result = {"type": "tool_result", "tool_use_id": call.id, "content": read_file(**call.input)}
            history.append({"role": "user", "content": [result]})

    check(lambda address, settings: asyncio.run(talk(address, settings)))


STREAMS = {
    "chat": lambda client: client.chat.completions.create(
        model="gpt-5", stream=True, stream_options={"include_usage": True}, messages=[{"role": "user", "content": QUESTION}]
    ),
    "responses": lambda client: client.responses.create(
        model="gpt-5", stream=True, store=False, input=[{"role": "user", "content": QUESTION}]
    ),
    "messages": lambda client: client.messages.create(
        model="claude-opus-5", stream=True, max_tokens=100, messages=[{"role": "user", "content": QUESTION}]
    ),
}


def read_all(stream):
    return [event.model_dump() for event in stream]


def read_one_by_one(stream):
    events = []
    while (event := next(stream, None)) is not None:
        events.append(event.model_dump())
    return events


async def aread_all(stream):
    return [event.model_dump() async for event in await stream]


async def aread_one_by_one(stream):
    events, stream = [], await stream
    while (event := await anext(stream, None)) is not None:
        events.append(event.model_dump())
    return events


@pytest.mark.parametrize("interface", STREAMS)
@pytest.mark.parametrize("read", [read_all, read_one_by_one, aread_all, aread_one_by_one])
def test_what_a_streamed_answer_reports_is_learnt_and_its_reader_sees_every_event(interface, read, monkeypatch):
    learnt = []
    monkeypatch.setattr(trimtab.Session, "answered", lambda self, usage: learnt.append(read_usage(usage)))
    wrap, kind = (wrapped_anthropic, "Anthropic") if interface == "messages" else (wrapped_openai, "OpenAI")
    is_async = asyncio.iscoroutinefunction(read)

    def events(settings):
        async def apart(client):
            return await read(STREAMS[interface](client))

        with scripted() as (address, _):
            client = wrap(address, settings, f"Async{kind}" if is_async else kind)
            return asyncio.run(apart(client)) if is_async else read(STREAMS[interface](client))

    plain = events(None)
    assert learnt == [] and len(plain) > 2
    assert events(FITTING) == plain
    assert [usage["input"] > 0 and usage["output"] for usage in learnt] == [9]


def test_a_stream_that_reports_nothing_teaches_nothing():
    class Stream:
        response = None

        def __init__(self):
            self.events = iter([object(), object()])

        def __iter__(self):
            return self.events

        def __next__(self):
            return next(self.events)

    from trimtab._streams import is_stream, listened

    learnt, stream = [], Stream()
    assert is_stream(stream) and not is_stream(object())
    listened(stream, learnt.append)
    assert len(list(stream)) == 2 and learnt == []


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_langchain_agents(kind):
    agents = pytest.importorskip("langchain.agents")
    models = pytest.importorskip("langchain_openai")
    from langchain_core.tools import tool
    from trimtab.langchain import TrimtabMiddleware

    @tool("read_file")
    def reading(path: str) -> str:
        """Read a file."""
        return read_file(path)

    def loop(address, settings):
        model = models.ChatOpenAI(model="gpt-5", base_url=f"{address}/v1", api_key="none", max_retries=0)
        middleware = [] if settings is None else [TrimtabMiddleware(**settings)]
        agent = agents.create_agent(model, [reading], system_prompt="You add things up.", middleware=middleware)
        asked = {"messages": [{"role": "user", "content": QUESTION}]}
        limit = {"recursion_limit": 1000}
        state = agent.invoke(asked, limit) if kind == "sync" else asyncio.run(agent.ainvoke(asked, limit))
        assert len(state["messages"]) == 2 + 2 * TURNS, "the state keeps every message"
        return state["messages"][-1].content

    check(loop)


def test_the_openai_agents_sdk():
    agents = pytest.importorskip("agents")
    openai = pytest.importorskip("openai")
    from trimtab.openai_agents import input_filter

    agents.set_tracing_disabled(True)

    @agents.function_tool(name_override="read_file")
    def reading(path: str) -> str:
        """Read a file."""
        return read_file(path)

    def loop(address, settings):
        client = openai.AsyncOpenAI(api_key="none", base_url=f"{address}/v1", max_retries=0)
        model = agents.OpenAIResponsesModel(model="gpt-5", openai_client=client)
        agent = agents.Agent(name="Adder", instructions="You add things up.", model=model, tools=[reading])
        chosen = {} if settings is None else {"call_model_input_filter": input_filter(**settings)}
        config = agents.RunConfig(tracing_disabled=True, **chosen)
        done = asyncio.run(agents.Runner.run(agent, QUESTION, max_turns=200, run_config=config))
        return done.final_output

    check(loop)


def test_a_request_whose_beginning_the_server_holds_goes_as_it_came():
    with scripted() as (address, came):
        client = wrapped_openai(address, {"budget": 1_000})
        sent = [{"role": "user", "content": read_file("src/1.txt")}]
        client.responses.create(model="gpt-5", input=sent, previous_response_id="resp_1")
        client.responses.create(model="gpt-5", input="one text")
    assert came[0][1] > 5_000, "all of it was sent"


def test_a_wrapped_client_is_a_client_of_its_class():
    openai = pytest.importorskip("openai")
    client = wrapped_openai("http://127.0.0.1:1", FITTING)
    assert isinstance(client, openai.OpenAI) and isinstance(client.with_options(timeout=3), type(client))
    with pytest.raises(TypeError, match="takes a client of openai"):
        trimtab.openai.wrap(object())


@pytest.mark.parametrize(
    ("module", "hidden", "words"),
    [
        ("trimtab.openai", "openai", "pip install openai"),
        ("trimtab.anthropic", "anthropic", "pip install anthropic"),
        ("trimtab.langchain", "langchain", "pip install 'langchain>=1.0'"),
        ("trimtab.openai_agents", "agents", "pip install openai-agents"),
    ],
)
def test_a_missing_package_is_said_only_where_its_adapter_is_used(module, hidden, words):
    program = f"import sys; sys.modules[{hidden!r}] = None; import trimtab; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and f"ImportError: {module} needs" in done.stderr and words in done.stderr
