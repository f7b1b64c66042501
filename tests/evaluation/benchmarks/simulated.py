"""Result files of τ²-bench, VitaBench and VitaBench 2.0, with the keys that theirs have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compoworld_core.storage.digest import JsonObject
from tests.evaluation.benchmarks.written import CANARY

FIRST_USAGE = {"completion_tokens": 7, "prompt_tokens": 100}


def message(role: str, content: str, **fields: Any) -> JsonObject:
    """A message that nobody was asked for, such as a greeting."""
    plain = {"role": role, "content": content, "tool_calls": None, "turn_idx": 0, "timestamp": "t", "cost": 0.0}
    return {**plain, "usage": None, "raw_data": None, **fields}


def said(role: str, content: str, usage: JsonObject) -> JsonObject:
    """A message of a model."""
    return message(role, content, usage=usage, raw_data={"model": "m", "choices": []})


def conversation() -> list[JsonObject]:
    """A greeting, a question, two turns of the agent."""
    return [
        message("assistant", "Hi!"),
        said("user", "My card, please.", {"completion_tokens": 5, "prompt_tokens": 50}),
        said("assistant", "Let me see.", FIRST_USAGE),
        message("tool", "{}", id="call_1", requestor="assistant", error=False),
        said("assistant", "Done.", {"completion_tokens": 3, "prompt_tokens": 120}),
    ]


def tau_simulation(task: str, trial: int, reward: float, **fields: Any) -> JsonObject:
    """One trial of τ²-bench."""
    action: JsonObject = {"action_id": "a", "requestor": "user", "name": "apply", "arguments": {}, "info": None}
    return {
        "id": f"{task}-{trial}", "task_id": task, "timestamp": "t", "start_time": "t", "end_time": "t",
        "duration": 1.5, "termination_reason": "user_stop", "agent_cost": 0.25, "user_cost": 0.5,
        "agent_usage": None,
        "reward_info": {
            "reward": reward,
            "db_check": {"db_match": reward == 1, "db_reward": reward},
            "env_assertions": [],
            "action_checks": [
                {"action": action, "action_match": True, "action_reward": 1.0, "tool_type": "write"}
            ],
            "nl_assertions": None, "communicate_checks": None, "reward_basis": ["DB"],
            "reward_breakdown": {"DB": reward},
            "info": {"env": None, "nl": None, "communicate": {"note": "-"}, "action": None},
        },
        "messages": conversation(), "ticks": None, "trial": trial, "seed": 300 + trial, "mode": "half_duplex",
        "speech_environment": None, "review": None, "user_only_review": None, "info": None,
        "auth_classification": None, "hallucination_retries_used": 0, "hallucination_check": None,
        "provider_session_id": None, "policy": "…", "effect_timeline": None, **fields,
    }  # fmt: skip


def broken_tau(task: str, trial: int) -> JsonObject:
    """A trial that never ran, as the harness writes it."""
    info = {
        "error": f"401: key {CANARY} is not known", "error_type": "AuthenticationError",
        "error_traceback": f"… headers={{'Authorization': 'Bearer {CANARY}'}}", "failed_after_attempts": 4,
    }  # fmt: skip
    fields: JsonObject = {
        "termination_reason": "infrastructure_error",
        "reward_info": None,
        "messages": [],
        "info": info,
    }
    return tau_simulation(task, trial, 0.0, **{**fields, "agent_cost": None, "user_cost": None})


def tau_results(simulations: Sequence[JsonObject], tasks: Sequence[str], trials: int = 3) -> JsonObject:
    """A whole `results.json` of τ²-bench; keys stand where the harness leaves them."""
    return {
        "timestamp": "t",
        "info": {
            "git_commit": "0" * 40, "num_trials": trials, "max_steps": 200, "max_errors": 10,
            "user_info": {
                "implementation": "user_simulator", "llm": "openai/simulator",
                "llm_args": {"api_base": "http://127.0.0.1:9/v1", "api_key": CANARY, "temperature": 0.0},
                "global_simulation_guidelines": "…", "voice_settings": None, "persona_config": None,
            },
            "agent_info": {
                "implementation": "llm_agent", "llm": "openai/org/Model-1.5",
                "llm_args": {"api_base": "http://127.0.0.1:9/v1", "api_key": CANARY, "temperature": 0.0},
                "voice_settings": None,
            },
            "environment_info": {"domain_name": "banking_knowledge", "policy": "…", "tool_defs": None},
            "seed": 300, "text_streaming_config": {"chunk_by": "words", "chunk_size": 1},
            "speech_complexity": None, "audio_native_config": None, "retrieval_config": "bm25",
            "retrieval_config_kwargs": None,
        },
        "tasks": [
            {
                "id": task, "description": {"purpose": "p", "relevant_policies": None, "notes": None},
                "user_scenario": {"persona": None, "instructions": "…"}, "ticket": None, "initial_state": None,
                "evaluation_criteria": {
                    "actions": [], "env_assertions": None, "communicate_info": [], "nl_assertions": None,
                    "reward_basis": ["DB"],
                },
                "issues": None,
                "required_documents": ["d"], "user_tools": ["apply"],
            }
            for task in tasks
        ],
        "simulations": list(simulations),
        "simulation_index": None,
    }  # fmt: skip


def vita_simulation(task: str, trial: int, met: Sequence[bool], **fields: Any) -> JsonObject:
    """One trial of VitaBench: it passes if all rubrics are met."""
    share = sum(met) / len(met)
    return {
        "id": f"{task}-{trial}", "task_id": task, "timestamp": "t", "start_time": "t", "end_time": "t",
        "duration": 1.5, "termination_reason": "user_stop", "agent_cost": 0.25, "user_cost": 0.5,
        "reward_info": {
            "reward": float(all(met)),
            "nl_rubrics": [{"nl_rubric": "r", "met": holds, "justification": "j"} for holds in met],
            "reward_breakdown": {"NL_ASSERTION": share},
            "info": {"evaluation_method": "sliding_window", "num_windows": 1, "window_size": 10},
            "window_evaluations": [],
        },
        "messages": conversation(), "states": {"old_states": [], "new_states": []}, "trial": trial,
        "seed": 300 + trial, **fields,
    }  # fmt: skip


def vita_results(
    simulations: Sequence[JsonObject], tasks: dict[str, str], trials: int = 4, model: str = "org/Model-1.5"
) -> JsonObject:
    """A whole result file of VitaBench, tasks with their domains."""
    arguments = {
        "base_url": "http://127.0.0.1:9/v1/chat/completions", "temperature": 0.0, "max_input_tokens": 1000,
        "headers": {"Authorization": f"Bearer {CANARY}", "Content-Type": "application/json"}, "name": model,
        "max_tokens": 100,
    }  # fmt: skip
    return {
        "timestamp": "t",
        "info": {
            "git_commit": "unknown", "num_trials": trials, "max_steps": 300, "max_errors": 10,
            "user_info": {
                "implementation": "user_simulator", "llm": "simulator", "llm_args": arguments,
                "global_simulation_guidelines": "…",
            },
            "agent_info": {"implementation": "llm_agent", "llm": model, "llm_args": arguments},
            "environment_info": {"domain_name": "delivery", "tool_defs": None},
            "seed": 300,
        },
        "tasks": [
            {
                "id": task, "domain": domain, "environment": {"time": "t"}, "user_scenario": {"user_profile": {}},
                "instructions": "Order lunch.", "evaluation_criteria": {"overall_rubrics": ["r"]},
                "message_history": [],
            }
            for task, domain in tasks.items()
        ],
        "simulations": list(simulations),
    }  # fmt: skip


def vita2_simulation(user: str, trial: int, rewards: dict[int, float], subtasks: int, **fields: Any) -> JsonObject:
    """One trial of a user of VitaBench 2.0: rewards by subtask."""
    found = {f"subtask_{index}_reward": reward for index, reward in rewards.items()}
    info = {
        "num_subtasks": subtasks, "num_evaluated": len(rewards), "subtask_rewards": found,
        "subtask_skill_tested": {f"subtask_{index}": ["recall"] for index in range(subtasks)}, "aggregation": "average",
    }  # fmt: skip
    reward = sum(rewards.values()) / len(rewards) if rewards else 0.0
    told: JsonObject = {"reward": reward, "info": info if rewards else {"note": "No subtasks were evaluated"}}
    return vita_simulation(user, trial, [True], **{"reward_info": told, **fields})


def vita2_results(simulations: Sequence[JsonObject], users: dict[str, int], trials: int = 2) -> JsonObject:
    """A whole result file of VitaBench 2.0: users with their number of subtasks."""
    document = vita_results(simulations, dict.fromkeys(users, "personalization"), trials)
    document["info"]["environment_info"]["domain_name"] = "personalization"
    for task in document["tasks"]:
        task["instructions"] = f"Personalization task with {users[task['id']]} subtasks"
    return document
