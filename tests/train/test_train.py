"""Trainings as a library and a command: tasks, checkpoints, and going on after a kill."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import tilewright as tw
from tilewright import train as job
from tilewright.bench.networks.torch_models import twin
from tilewright.cli import main

SINE = ["train", "sine", "--hidden", "8"]


def tensors(path):
    """What a checkpoint holds, but for times: tensors as bytes, all else as it is."""

    def plain(value):
        if isinstance(value, tw.Tensor):
            return (value.dtype.name, value.shape, bytes(memoryview(value.contiguous())))
        if isinstance(value, dict):
            timed = ("seconds", "rate")
            return {key: plain(part) for key, part in value.items() if key not in timed}
        return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value

    return plain(tw.load(path))


def small(name, **changes):
    """A task of that name and options under which it takes well below a second."""
    options = {"epochs": 2, "batch": 16, "hidden": 8, "length": 12, "layers": 2, "lr": 0.01}
    task = SMALL[name.partition(" ")[0]]()
    return task, replace(job.default_options(*name.split()), **{**options, **changes})


def small_digits():
    task = job.load_images("digits")
    return job.Task(
        "digits",
        *(t[:100] for t in (task.train_images, task.train_labels)),
        task.test_images,
        task.test_labels,
    )


def small_text():
    lines = ["to be, or not to be, that is the question:", "whether tis nobler in the mind"]
    return job.Text("\n".join(lines * 24))


SMALL = {"digits": small_digits, "shakespeare": small_text, "sine": job.Sine}
EVERY = ["digits mlp", "digits cnn", "shakespeare lstm", "shakespeare gpt", "sine mlp"]


class Growing(tw.nn.Module):
    """A layer times a number that Python counts, which no recording can repeat."""

    def __init__(self, layer, count):
        self.layer = layer
        self.count = count

    def forward(self, x):
        return self.layer(x) * next(self.count)


class StopError(Exception):
    pass


class TestTasks:
    @pytest.mark.parametrize("name", EVERY)
    def test_each_model_learns(self, name):
        task, options = small(name, epochs=4)
        run = job.train(task, options)
        losses = [epoch.loss for epoch in run.epochs]
        assert losses[-1] < losses[0]
        assert run.metric == task.metric
        assert all(epoch.rate > 0 for epoch in run.epochs)
        again = job.train(task, options)
        assert [epoch.loss for epoch in again.epochs] == losses
        assert again.score == run.score

    def test_the_sine_is_fitted_better_than_its_samples_are(self):
        run = job.train(job.Sine(), job.default_options("sine"))
        # A quarter of the mean square of the samples' noise, which is 0.01.
        assert run.score < 2.5e-3
        assert run.as_dict()["mean_squared_error"] == run.score
        assert run.as_dict()["epochs"][0]["points_per_second"] > 0

    def test_what_is_not_there(self):
        with pytest.raises(ValueError, match=r"task is digits, mnist.*, got 'cifar'"):
            job.load_task("cifar")
        with pytest.raises(ValueError, match="a task of images is digits or mnist, got 'sine'"):
            job.load_images("sine")
        with pytest.raises(ValueError, match="sine has the models mlp, not 'gpt'"):
            job.default_options("sine", "gpt")
        with pytest.raises(ValueError, match="sine has the models mlp, not 'cnn'"):
            job.train(job.Sine(), job.Options(model="cnn"))
        with pytest.raises(ValueError, match=r"model is one of mlp, .*; got 'vgg'"):
            job.Options(model="vgg")

    def test_a_base_class_says_what_to_define(self):
        with pytest.raises(TypeError, match=r"abstract class Trainable .*build.*evaluate.*loss"):
            job.Trainable()


class TestDecay:
    def test_each_epoch_has_its_rate(self):
        options = job.Options(lr=0.5, decay=0.5)
        assert [options.learning_rate_of(epoch) for epoch in (1, 2, 3)] == [0.5, 0.25, 0.125]
        task, options = small("sine", decay=0.5)
        same = [e.loss for e in job.train(task, replace(options, decay=1.0)).epochs]
        slower = [e.loss for e in job.train(task, options).epochs]
        assert slower[0] == same[0]
        assert slower[1] != same[1]

    def test_a_training_made_longer_has_the_same_rates(self, tmp_path):
        task, options = small("sine", decay=0.5)
        path = tmp_path / "x"
        job.train(task, options, checkpoint=job.Checkpoint(path))
        longer = replace(options, epochs=4)
        run = job.train(task, longer, checkpoint=job.Checkpoint(path, resume=True))
        assert [e.loss for e in run.epochs] == [e.loss for e in job.train(task, longer).epochs]

    @pytest.mark.parametrize("decay", [0, -1.0, 1.5, float("nan")])
    def test_what_cannot_be(self, decay):
        with pytest.raises(ValueError, match="decay must be above 0 and at most 1"):
            job.Options(decay=decay)


class TestCheckpoints:
    @pytest.mark.parametrize("stop", [1, 7, 8, 13])
    @pytest.mark.parametrize("name", EVERY)
    def test_an_interrupted_training_goes_on_to_the_same_bits(self, tmp_path, name, stop):
        task, options = small(name)
        whole, part = tmp_path / "whole", tmp_path / "part"
        expected = job.train(task, options, checkpoint=job.Checkpoint(whole))
        batches = 0

        def interrupt(_):
            nonlocal batches
            batches += 1
            if batches == stop:
                raise StopError

        with pytest.raises(StopError):
            job.train(task, options, interrupt, checkpoint=job.Checkpoint(part, 1e-9))
        assert part.exists() == (stop > 1)
        tw.manual_seed(99)
        if part.exists():
            run = job.train(task, options, checkpoint=job.Checkpoint(part, resume=True))
            assert tensors(part) == tensors(whole)
            assert [e.loss for e in run.epochs] == [e.loss for e in expected.epochs]
            assert list(run.batch_losses) == list(expected.batch_losses)
            assert run.score == expected.score

    def test_a_finished_training_is_told_again_and_can_be_made_longer(self, tmp_path):
        task, options = small("sine")
        path = tmp_path / "x"
        first = job.train(task, options, checkpoint=job.Checkpoint(path))
        again = job.train(task, options, checkpoint=job.Checkpoint(path, resume=True))
        assert again.epochs == first.epochs
        longer = replace(options, epochs=3)
        run = job.train(task, longer, checkpoint=job.Checkpoint(path, resume=True))
        expected = job.train(task, longer)
        assert [e.loss for e in run.epochs] == [e.loss for e in expected.epochs]
        with pytest.raises(ValueError, match="has 3 epochs behind it, more than 2"):
            job.train(task, options, checkpoint=job.Checkpoint(path, resume=True))

    def test_what_a_killed_process_left_goes_with_the_next_checkpoint(self, tmp_path):
        task, options = small("sine")
        path = tmp_path / "x"
        job.train(task, options, checkpoint=job.Checkpoint(path))
        others = {"x", "xy.0123abcd.tilewright-tmp", "x.mine.tilewright-tmp"}
        for name in ("x.0123abcd.tilewright-tmp", *(others - {"x"})):
            (tmp_path / name).write_text("half")
        with pytest.raises(ValueError, match="is a training with hidden 8, not 9"):
            job.train(
                task, replace(options, hidden=9), checkpoint=job.Checkpoint(path, resume=True)
            )
        assert len(os.listdir(tmp_path)) == 4
        job.train(task, replace(options, epochs=3), checkpoint=job.Checkpoint(path, resume=True))
        assert set(os.listdir(tmp_path)) == others

    def test_short_epochs_do_not_write_a_file_each(self, tmp_path, monkeypatch):
        """Where each writing takes as long as ten epochs; what was written is gone on from."""
        clock = [0.0]
        save = tw.save

        def slow_save(state, path):
            save(state, path)
            clock[0] += 10
            written.append(len(state["epochs"]))

        def on_epoch(run):
            clock[0] += 1
            if len(run.epochs) == stop:
                raise StopError

        monkeypatch.setattr("tilewright.train.checkpoint.time.monotonic", lambda: clock[0])
        monkeypatch.setattr("tilewright.train.checkpoint.save", slow_save)
        task, options = small("sine", epochs=500)
        path, written, stop = tmp_path / "x", [], 450
        with pytest.raises(StopError):
            job.train(task, options, on_epoch=on_epoch, checkpoint=job.Checkpoint(path, 1e9))
        assert written == [1, 201, 401]
        stop = -1
        run = job.train(
            task, options, on_epoch=on_epoch, checkpoint=job.Checkpoint(path, 1e9, resume=True)
        )
        assert written[3:] == [402, 500]
        assert list(run.batch_losses) == list(job.train(task, options).batch_losses)

    def test_nothing_is_overwritten_by_mistake(self, tmp_path):
        path = tmp_path / "x"
        with pytest.raises(FileNotFoundError, match=r"no checkpoint .*x to go on from"):
            job.Checkpoint(path, resume=True)
        path.write_text("mine")
        with pytest.raises(FileExistsError, match=r"a checkpoint .*x is there already"):
            job.Checkpoint(path)
        assert path.read_text() == "mine"

    @pytest.mark.parametrize(
        ("name", "changes", "text"),
        [
            ("sine", {"hidden": 9}, "is a training with hidden 8, not 9"),
            ("sine", {"lr": 0.5}, "is a training with lr 0.01, not 0.5"),
            ("sine", {"seed": 3}, "is a training with seed 1, not 3"),
            ("digits", {}, "is a training of sine, not of digits"),
        ],
    )
    def test_a_checkpoint_of_another_training(self, tmp_path, name, changes, text):
        path = tmp_path / "x"
        job.train(*small("sine"), checkpoint=job.Checkpoint(path))
        before = path.read_bytes()
        with pytest.raises(ValueError, match=text):
            job.train(*small(name, **changes), checkpoint=job.Checkpoint(path, resume=True))
        assert path.read_bytes() == before

    def test_a_checkpoint_of_other_data(self, tmp_path):
        path = tmp_path / "x"
        job.train(*small("digits", epochs=1), checkpoint=job.Checkpoint(path))
        task = job.load_images("digits")
        with pytest.raises(ValueError, match="on other data: images 100, here 1437"):
            job.train(
                task, small("digits", epochs=1)[1], checkpoint=job.Checkpoint(path, resume=True)
            )

    @pytest.mark.parametrize(
        ("damage", "text"),
        [
            (lambda s: {"x": tw.ones(2)}, "is no checkpoint of a training"),
            (lambda s: {k: v for k, v in s.items() if k != "loader"}, "no 'loader'"),
            (lambda s: {**s, "part": {}}, "damaged checkpoint: KeyError"),
            (lambda s: {**s, "options": {"no": 1}}, "damaged options"),
            (lambda s: {**s, "loader": {}}, "not the state of a loader"),
            (lambda s: {**s, "model": {}}, "missing: 0.weight"),
            (lambda s: {**s, "optimizer": {}}, "'param_groups' is missing"),
            (lambda s: {**s, "random": [1]}, "damaged checkpoint: IndexError"),
        ],
    )
    def test_damage(self, tmp_path, damage, text):
        path = tmp_path / "x"
        job.train(*small("sine"), checkpoint=job.Checkpoint(path))
        tw.save(damage(tw.load(path)), path)
        with pytest.raises(ValueError, match=text):
            job.train(*small("sine"), checkpoint=job.Checkpoint(path, resume=True))

    def test_a_cut_file(self, tmp_path):
        path = tmp_path / "x"
        job.train(*small("sine"), checkpoint=job.Checkpoint(path))
        path.write_bytes(path.read_bytes()[:-5])
        with pytest.raises(ValueError, match="truncated"):
            job.train(*small("sine"), checkpoint=job.Checkpoint(path, resume=True))


class TestText:
    def trained(self, model):
        task, options = small(f"shakespeare {model}", epochs=20)
        return task, job.train(task, options)

    @pytest.mark.parametrize("model", ["lstm", "gpt"])
    def test_it_writes_what_it_has_read(self, model):
        task, run = self.trained(model)
        assert run.score < 2.0  # bits; 4.4 are those of the 21 symbols drawn evenly
        text = task.sample(run.model, 200, temperature=0.2, seed=1, start="to be, ")
        assert len(text) == 200
        words = set(
            re.findall("[a-z]+", "to be or not that is the question whether tis nobler in mind")
        )
        written = text.replace(",", " ").replace(":", " ").split()
        assert sum(word in words for word in written) > len(written) / 2

    @pytest.mark.parametrize("model", ["lstm", "gpt"])
    def test_samples_follow_seed_and_temperature(self, model):
        task, options = small(f"shakespeare {model}")
        net = job.build_model(task, options)
        first = task.sample(net, 50, seed=3)
        assert task.sample(net, 50, seed=3) == first
        assert task.sample(net, 50, seed=4) != first
        assert task.sample(net, 20, seed=3) == first[:20]
        cold = {task.sample(net, 10, temperature=1e-4, seed=i) for i in range(3)}
        assert len(cold) == 1  # the likeliest each time
        assert task.sample(net, 0) == ""

    @pytest.mark.parametrize("model", ["lstm", "gpt"])
    def test_kept_state_gives_what_the_whole_text_gives(self, model):
        task, options = small(f"shakespeare {model}")
        net = job.build_model(task, options)
        tokens = task.train_tokens[:12].tolist()
        with tw.no_grad():
            whole = net(tw.asarray([tokens]))
            whole = whole[0] if model == "lstm" else whole
            logits, state = net.follow(tokens[:5])
            steps = [logits]
            for token in tokens[5:]:
                logits, state = net.follow([token], state)
                steps.append(logits)
        apart = tw.stack(steps) - whole[0, 4:]
        assert abs(apart).max().item() < 1e-5

    def test_a_full_context_goes_on_from_its_last_half(self):
        task, options = small("shakespeare gpt")
        net = job.build_model(task, options)
        tokens = task.train_tokens[:40].tolist()
        with tw.no_grad():
            _, cache = net.follow(tokens[:12])
            assert cache.length == 12
            logits, cache = net.follow([tokens[12]], cache)
            assert cache.tokens == tokens[7:13]
            expected = net(tw.asarray([tokens[7:13]]))[0, -1]
            assert abs(logits - expected).max().item() < 1e-5
            long, cache = net.follow(tokens)
            assert cache.tokens == tokens[-6:]
            assert abs(long - net(tw.asarray([tokens[-6:]]))[0, -1]).max().item() < 1e-5

    def test_a_recorded_step_gives_the_bits_of_the_modules(self):
        task, options = small("shakespeare gpt")
        net = job.build_model(task, options)
        tokens = task.train_tokens[:40].tolist()

        def written(replays):
            net.replays, cache, logits = replays, None, []
            with tw.no_grad():
                for token in tokens:  # thrice as many as the context holds
                    y, cache = net.follow([token], cache)
                    logits.append(y.tolist())
            return logits, cache

        modules, plain = written(False)
        replayed, cache = written(True)
        assert replayed == modules
        assert plain.recorded is None
        ops = [op for op, _ in cache.recorded.calls()]
        assert ops.count("attend_with_cache") == options.layers
        with tw.no_grad():
            _, fresh = net.follow([1])
            with tw.explain() as seen:
                net.follow([2], fresh)
        assert [entry.op for entry in seen] == ops

    def test_a_step_is_recorded_anew_where_other_kernels_are_chosen(self):
        task, options = small("shakespeare gpt")
        net = job.build_model(task, options)
        with tw.no_grad():
            _, cache = net.follow([1])
            first = cache.recorded
            with tw.kernels.use(matmul="naive"):
                net.follow([2], cache)
                kernels = {kernel for op, kernel in cache.recorded.calls() if op == "linear"}
                assert kernels == {"naive"}
                second = cache.recorded
                net.follow([3], cache)
                assert cache.recorded is second is not first
            net.follow([4], cache)
            assert cache.recorded.calls() == first.calls()
            before = tw.get_float32_matmul_precision()
            third = cache.recorded
            tw.set_float32_matmul_precision("medium")
            try:
                net.follow([5], cache)
                assert cache.recorded is not third
            finally:
                tw.set_float32_matmul_precision(before)

    def test_weights_that_change_in_place_are_those_of_the_next_step(self):
        task, options = small("shakespeare gpt")
        net = job.build_model(task, options)
        with tw.no_grad():
            _, cache = net.follow([1])
            net.head.weight.mul_(2.0)
            recorded = cache.recorded
            logits, _ = net.follow([2], cache)
            assert cache.recorded is recorded
            assert abs(logits - net(tw.asarray([[1, 2]]))[0, -1]).max().item() < 1e-5

    def test_a_step_is_not_recorded_where_more_than_ops_belongs_to_it(self):
        task, options = small("shakespeare gpt")
        net = job.build_model(task, options)
        _, cache = net.follow([1])
        logits, _ = net.follow([2], cache)
        assert logits.requires_grad
        assert cache.recorded is None
        told = []
        with tw.no_grad():
            net.follow([3], cache)
            recorded = cache.recorded
            net.ln_f.register_forward_hook(lambda *seen: told.append(1))
            net.follow([4], cache)
            assert told == [1]
            assert cache.recorded is recorded
        assert cache.length == 4

    def test_a_step_that_cannot_be_recorded_is_one_of_the_modules(self):
        task, options = small("shakespeare gpt")
        net = job.build_model(task, options)
        with tw.no_grad(), tw.kernels.use(attend_with_cache="body"):
            logits, cache = net.follow([1])
            assert "reads how many rows are filled" in cache.refused
            logits, _ = net.follow([2], cache)
            assert abs(logits - net(tw.asarray([[1, 2]]))[0, -1]).max().item() < 1e-5
        assert cache.recorded is None
        assert cache.length == 2
        with tw.no_grad():  # with kernels that can
            logits, _ = net.follow([3], cache)
            assert abs(logits - net(tw.asarray([[1, 2, 3]]))[0, -1]).max().item() < 1e-5
        assert cache.refused == ""
        assert cache.recorded is not None

    def test_a_refusal_is_of_the_model_as_it_was(self):
        task, options = small("shakespeare gpt")
        net = job.build_model(task, options)
        norm, count = net.ln_f, iter(range(1, 100))
        with tw.no_grad():
            net.ln_f = Growing(norm, count)
            _, cache = net.follow([1, 2])
            net.follow([3], cache)
            assert "gave multiply the number" in cache.refused
            before = next(count)
            net.follow([4], cache)
            assert next(count) == before + 2  # called once, nothing is tried again
            net.ln_f = norm
            net.follow([5], cache)
        assert cache.refused == ""
        assert cache.recorded is not None

    def test_what_cannot_be(self):
        task, options = small("shakespeare lstm")
        net = job.build_model(task, options)
        for arguments in ({"length": -1}, {"length": 1, "temperature": 0.0}):
            with pytest.raises(ValueError, match="sample: length from 0 and a temperature above 0"):
                task.sample(net, **arguments)
        with pytest.raises(ValueError, match="'X' not among the"):
            task.sample(net, 3, start="X")
        with pytest.raises(ValueError, match="start is empty"):
            task.sample(net, 3, start="")
        with pytest.raises(ValueError, match=r"hold no window of 500 each; give a longer text"):
            job.train(task, replace(options, length=500))
        with pytest.raises(ValueError, match="4 heads do not divide a width of 10"):
            job.build_model(task, replace(options, model="gpt", hidden=10))

    def test_states_are_those_of_pytorch(self):
        torch = pytest.importorskip("torch")
        for name in ("digits cnn", "shakespeare lstm", "shakespeare gpt"):
            task, options = small(name)
            model = job.build_model(task, options)
            theirs = twin(torch, model)
            assert set(theirs.state_dict()) == set(model.state_dict())
            model.load_state_dict(theirs.state_dict())


@pytest.fixture
def text_folder(tmp_path):
    folder = tmp_path / "text"
    folder.mkdir()
    lines = ["to be, or not to be, that is the question:", "whether tis nobler in the mind"]
    (folder / "input.txt").write_text("\n".join(lines * 12), encoding="utf-8")
    return str(folder)


class TestCommand:
    @pytest.mark.parametrize("model", ["lstm", "gpt"])
    def test_text(self, capsys, tmp_path, text_folder, model):
        command = ["train", "shakespeare", "--model", model, "--data", text_folder]
        command += ["--hidden", "8", "--layers", "1", "--length", "12", "--epochs", "1"]
        assert main([*command, "--sample", "30", "--temperature", "0.5"]) == 0
        out = capsys.readouterr().out
        assert f"shakespeare: {model}, 1 layer of 8, windows of 12, 798 training and" in out
        assert "validation bits per character" in out
        assert "characters/s" in out
        assert "30 characters at temperature 0.5" in out
        target = tmp_path / "run.json"
        assert main([*command, "--json", str(target)]) == 0
        (run,) = json.loads(target.read_text())["runs"]
        assert len(run["sample"]) == 400
        assert run["bits_per_character"] > 0
        assert run["epochs"][0]["characters_per_second"] > 0
        assert main([*command, "--ladder"]) == 1
        assert "--ladder compares kernels of matmul" in capsys.readouterr().err

    def test_output_for_people(self, capsys):
        assert main([*SINE, "--epochs", "2"]) == 0
        out = capsys.readouterr().out
        assert "sine: 1-8-8-1, 512 noisy points of sin(x), batch 32, adam" in out
        assert "epoch  2/2  loss" in out
        assert "squared error from the sine" in out
        assert "points/s" in out

    def test_resuming_takes_the_options_of_the_checkpoint(self, capsys, tmp_path):
        path = str(tmp_path / "x")
        assert main([*SINE, "--epochs", "2", "--checkpoint", path, "--batch", "64"]) == 0
        assert main(["train", "sine", "--checkpoint", path, "--resume", "--epochs", "3"]) == 0
        assert "epoch  3/3" in capsys.readouterr().out
        assert main(["train", "sine", "--checkpoint", path, "--resume"]) == 0
        assert f"nothing left to do: {path} has all 3 epochs" in capsys.readouterr().out
        assert main(["train", "sine", "--checkpoint", path, "--resume", "--batch", "8"]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"tilewright train: {path} is a training with batch 64, not 8")
        assert main(["train", "digits", "--checkpoint", path, "--resume"]) == 1
        assert "is a training of sine, not of digits" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            (["--resume"], "--resume needs a file: add --checkpoint FILE"),
            (["--every", "3"], "--every needs a file"),
            (["--checkpoint", "x", "--ladder"], "leave --ladder out"),
            (["--checkpoint", "no/such/folder/x"], "create the folder no/such/folder first"),
            (["--checkpoint", "x", "--resume"], "no checkpoint x to go on from"),
            (["--model", "gpt"], "sine has the models mlp, not 'gpt'"),
            (["--sample", "3"], "--sample is of text, of which sine has none"),
            (["--temperature", "3"], "--temperature is of text"),
            (["--data", "x"], "--data is of tasks that are files; sine reads none"),
            (["--layers", "2"], "--layers is of the models lstm and gpt; here it is the mlp"),
            (["--length", "9"], "--length is of the models lstm and gpt; here it is the mlp"),
        ],
    )
    def test_options_that_cannot_be(self, capsys, tmp_path, monkeypatch, options, text):
        monkeypatch.chdir(tmp_path)
        assert main([*SINE, *options]) == 1
        error = capsys.readouterr().err
        assert text in error
        assert error.count("\n") == 1
        assert os.listdir(tmp_path) == []

    def test_another_optimizer_has_its_own_rate(self, capsys, text_folder):
        command = ["train", "shakespeare", "--data", text_folder, "--hidden", "8", "--json"]
        command += ["--length", "12", "--epochs", "1", "--sample", "1"]
        rates = []
        for more in ([], ["--optimizer", "sgd"], ["--optimizer", "sgd", "--lr", "0.5"]):
            assert main([*command, *more]) == 0
            rates.append(json.loads(capsys.readouterr().out)["runs"][0]["options"]["lr"])
        assert rates == [0.002, None, 0.5]

    def test_a_lost_loss_is_told_once(self, capsys):
        assert main([*SINE, "--epochs", "3", "--optimizer", "sgd", "--lr", "1e30"]) == 0
        out = capsys.readouterr().out
        assert out.count("the loss is no longer finite: try an --lr below 1e+30") == 1

    def test_the_ladder_of_a_regression(self, capsys):
        assert main([*SINE, "--epochs", "1", "--ladder"]) == 0
        out = capsys.readouterr().out
        assert "The ladder on sine" in out
        assert "points/s" in out

    def test_pictures(self, tmp_path):
        pytest.importorskip("matplotlib")
        path = tmp_path / "x.png"
        assert main([*SINE, "--epochs", "2", "--plot", str(path)]) == 0
        assert path.read_bytes().startswith(b"\x89PNG")
        assert main([*SINE, "--epochs", "1", "--ladder", "--plot", str(path)]) == 0

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
    @pytest.mark.parametrize(("task", "kills"), [("sine", 3), ("lstm", 1), ("gpt", 1)])
    def test_a_killed_process_goes_on_to_the_same_bits(self, tmp_path, text_folder, task, kills):
        command = [sys.executable, "-m", "tilewright", *SINE, "--epochs", "60", "--json"]
        if task != "sine":
            command[3:] = ["train", "shakespeare", "--model", task, "--data", text_folder]
            command += ["--hidden", "8", "--length", "12", "--epochs", "8", "--batch", "4"]
            command += ["--json"]
        environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
        alone = subprocess.run(
            [*command, "--checkpoint", "whole"],
            cwd=tmp_path, env=environment, check=True, capture_output=True,
        )  # fmt: skip
        command += ["--checkpoint", "part", "--every", "0.001"]
        for _ in range(kills):
            resume = ["--resume"] if (tmp_path / "part").exists() else []
            before = (tmp_path / "part").stat().st_mtime_ns if resume else 0
            process = subprocess.Popen(
                [*command, *resume],
                cwd=tmp_path, env=environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                part = tmp_path / "part"
                if part.exists() and part.stat().st_mtime_ns > before:
                    time.sleep(0.01)  # somewhere within the next batches or the next writing
                    break
            process.kill()
            process.wait()
        assert (tmp_path / "part").exists()
        rest = subprocess.run(
            [*command, "--resume"], cwd=tmp_path, env=environment, check=True, capture_output=True
        )
        assert tensors(tmp_path / "part") == tensors(tmp_path / "whole")
        results = [json.loads(done.stdout)["runs"][0] for done in (alone, rest)]
        for name in ("mean_squared_error", "bits_per_character", "sample"):
            assert results[0].get(name) == results[1].get(name)
        losses = [[epoch["loss"] for epoch in run["epochs"]] for run in results]
        assert losses[0] == losses[1]
